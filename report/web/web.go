// Package web holds the front end of the report as one script and one style sheet. They are built from the TypeScript
// in src by npm (npm ci --ignore-scripts && npm run build) into dist, which is committed, so that building Noether
// needs no npm.
package web

import _ "embed"

// Script draws the charts and the tables of a report.
//
//go:embed dist/report.js
var Script string

// Style is the style sheet of a report.
//
//go:embed dist/report.css
var Style string
