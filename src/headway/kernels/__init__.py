"""What is here for speed alone; a test holds each piece equal to its readable twin."""
