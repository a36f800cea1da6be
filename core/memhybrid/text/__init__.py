"""Text to terms and entities: scripts, normalisation, tokens and the analysers."""
