#!/bin/bash
# Make build/spark: the packages of tests/requirements-spark.txt, Spark itself among them, and
# this clone's own package (see environment.sh). Spark comes as a source package of 450 MB, which
# is made a wheel once.
# usage: tools/spark_env.sh [--count] [VERSION]
#   --count   close with "N passed, N failed", for tests/run.py
#   VERSION   build/spark-VERSION of tests/requirements-spark-VERSION.txt instead, as 4.0
set -euo pipefail
count=
[[ ${1:-} != --count ]] || { count=1; shift; }
name=spark${1:+-$1}
locks=("tests/requirements-$name.txt")
warm="import numpy, pandas, pyarrow.parquet, pyarrow.compute, pytest, safetensors.numpy
import compileall, os, pyspark, re
compileall.compile_dir(os.path.dirname(pyspark.__file__), quiet=1,
                       rx=re.compile('/pyspark/.*/(tests|examples)/'))"
fetch="wheel --use-pep517"
download_size="2.5 GB"
source "$(dirname "$0")/environment.sh"

# Spark runs the java of JAVA_HOME, else that of PATH.
java_of_spark() {
    if [[ -n ${JAVA_HOME:-} ]]; then echo "$JAVA_HOME/bin/java"; else command -v java || true; fi
}

check_java() {
    local java found
    java=$(java_of_spark)
    if [[ -z $java ]]; then
        "$root/tools/setup.sh" spark
        java=$(java_of_spark)
    fi
    found=$("${java:-java}" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p;T;q') || true
    [[ ${found:-0} -ge 17 ]] && return
    say "Spark needs Java 17 or later, found ${found:+version $found in }${java:-none}" \
        "(openjdk-17-jre-headless on Debian 12; JAVA_HOME chooses one)"
    exit 1
}

check_java
make_environment
[[ -z $count ]] || echo "1 passed, 0 failed"
