"""The chat adapters against their wire servers, with the real client libraries."""
