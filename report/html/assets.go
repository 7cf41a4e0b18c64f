package html

import _ "embed"

// The front end is compiled from TypeScript in web/src to web/dist, which is committed so that
// building Noether does not need npm (npm ci --ignore-scripts && npm run build).

// frontEnd draws the charts and the tables of a report.
//
//go:embed web/dist/report.js
var frontEnd string

// Style is the style sheet of a report.
//
//go:embed web/dist/report.css
var Style string

//go:embed page.html
var pageText string
