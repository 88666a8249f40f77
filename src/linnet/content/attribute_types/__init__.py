"""The kinds of conditions that an attribute can have, one module each; `content.predicate` lists them."""
