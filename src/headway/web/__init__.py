"""The model in the browser alone: its file, an engine in JavaScript, and a page that translates without a server."""
