"""The routes of docs/http-api.md, one blueprint a module."""
