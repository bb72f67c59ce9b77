// The CustomResourceDefinitions of ServiceMonitor, PodMonitor and PrometheusRule, for check_on_api_server.py.
module muster.dev/tests/integration/chart/prometheus-operator

go 1.19

require github.com/prometheus-operator/prometheus-operator v0.85.0
