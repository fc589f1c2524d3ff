"""The numbers of docs/trust.md: what is run for them, where they are kept, and the page that is written from them."""
