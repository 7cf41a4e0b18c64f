package html

import _ "embed"

// The front end is built from the TypeScript in web/src into web/dist, which is committed, so that
// building Noether needs no npm (npm ci --ignore-scripts && npm run build).

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
