"""What a verb or a view says, as plain data, and a renderer a format: terminal, Markdown and HTML."""
