package docs

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// free matches lines that are not wrapped: tables, headings, images, HTML and code.
var free = regexp.MustCompile(`^(\s*\||#|!\[|<|\s{4,}\S)`)

// TestFormat holds pages to lines of at most 100 columns and paragraphs of at most five lines, tables and code excepted.
func TestFormat(t *testing.T) {
	t.Parallel()
	const columns, lines = 100, 5
	for name, text := range pages(t) {
		length := 0 // of the paragraph, in lines
		for _, line := range strings.Split(fence.ReplaceAllString(text, ""), "\n") {
			if line == "" || free.MatchString(line) {
				length = 0
				continue
			}
			if utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line has more than %d columns: %.60s", name, columns, line)
			}
			if listItem.MatchString(line) {
				length = -100 // items may be longer
			}
			if length++; length == lines+1 {
				t.Errorf("%s: a paragraph has more than %d lines, up to: %.60s", name, lines, line)
			}
		}
	}
}

var listItem = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
