"""What users call; each verb joins the pure core, Spark and a backend."""
