"""Live feeds of results: what is sent to whom, without any web framework (server/hub.py and server/routes/results.py drive it)."""
