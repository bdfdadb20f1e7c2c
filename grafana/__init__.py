"""The dashboard for Grafana: `qd-dashboard.json` is written by `python -m grafana.build` from what stands here.

`rows/` says what each row asks and shows, `promql` how series are chosen and added up, `panels` what Grafana
is told about a panel, `board` what holds them together. `pictures` draws the rows from what a Prometheus
answers. None of it is a part of the package that is installed. May import: qd.metrics.catalogue.
"""
