"""Lets Spark 4 find the data source `safetensors` by itself: it looks for DefaultSource in all
modules named pyspark_*. An import error here would break the look-up of all Python sources,
so where something is missing (pyspark, or its Python data sources) there is no DefaultSource.
Nothing else is imported before the source is used. LIBSAFETENSORS_SPARK_NAME gives it another
short name, which is needed where the Scala connector's jar is on the class path."""

try:
    from libsafetensors.spark._source import SafetensorsDataSource as DefaultSource
except Exception:
    __all__ = []
else:
    __all__ = ["DefaultSource"]
