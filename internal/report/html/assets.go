package html

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/noether-ml/noether/internal/report"
)

// The front end is compiled from TypeScript in web/src to web/dist, which is committed so that
// building Noether does not need npm (npm ci --ignore-scripts && npm run build).

// frontEnd draws the charts and the tables of a report.
//
//go:embed web/dist/report.js
var frontEnd string

//go:embed web/dist/report.css
var styleSheet string

// Style is the style sheet of a report, with the colours of series as variables.
var Style = seriesStyle() + styleSheet

// seriesStyle defines the variables --series-0, --series-1, ... for light and dark screens and for
// paper.
func seriesStyle() string {
	var light, dark strings.Builder
	for i, c := range report.SeriesColours {
		fmt.Fprintf(&light, "--series-%d:%s;", i, c.Light)
		fmt.Fprintf(&dark, "--series-%d:%s;", i, c.Dark)
	}
	return fmt.Sprintf(":root{%[1]s}@media (prefers-color-scheme:dark){:root{%[2]s}}@media print{:root{%[1]s}}\n", &light, &dark)
}

// pageText is the template of a report's page.
//
//go:embed page.html
var pageText string
