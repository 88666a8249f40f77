"""The scenario of a place: guests, co-hosts, churn."""
