"""The translation server (extra `serve`): the LibreTranslate HTTP shapes over one or more models, and a page."""
