"""A trained model in the browser alone: what its page needs, and the page's own engine and tokenizer in JavaScript."""
