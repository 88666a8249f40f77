"""Studies, each a folder: workload, run, metrics, report, published figures."""
