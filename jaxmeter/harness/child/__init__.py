"""One fresh process that answers one message; the server that it is forked from."""
