"""The control API, described once: server, client, OpenAPI and `linnet api` are derived from commands."""
