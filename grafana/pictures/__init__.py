"""Draws the dashboard's rows from what a Prometheus answers, so that a reader sees what they would get.

`python -m grafana.pictures --prometheus http://127.0.0.1:9090` writes one picture for each row. The layout, the titles,
the queries, units and thresholds are the dashboard's; the drawing is matplotlib's, for Grafana itself isn't needed.
`answers` asks, `words` writes numbers, `look` has colours and places, `lines` and `cells` draw panels, `page` a row.
May import: grafana.board, matplotlib (extra `dev`).
"""
