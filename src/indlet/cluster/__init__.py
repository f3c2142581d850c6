"""A node on several machines: PostgreSQL for records and jobs, OpenSearch for the index. An extension."""
