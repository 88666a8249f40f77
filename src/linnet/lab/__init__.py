"""The lab: traces to workloads to runs to figures, on Spark. Needs ``linnet[lab]``."""
