package docs

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// unwrapped matches lines that may be of any length: tables, headings, images, HTML and code.
var unwrapped = regexp.MustCompile(`^(\s*\||#|!\[|<|\s{4,}\S)`)

// TestFormat checks that pages have lines of at most 100 columns and paragraphs of at most five
// lines, except for code, lines that match unwrapped, lists of more lines, and long lines without a
// space. pages returns the texts of the pages by path, and fence matches blocks of code.
func TestFormat(t *testing.T) {
	t.Parallel()
	const columns, lines = 100, 5
	for name, text := range pages(t) {
		length := 0 // of the paragraph, in lines
		for _, line := range strings.Split(fence.ReplaceAllString(text, ""), "\n") {
			if line == "" || unwrapped.MatchString(line) {
				length = 0
				continue
			}
			if utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line has more than %d columns: %.60s", name, columns, line)
			}
			if listItem.MatchString(line) {
				length = -100 // items may have more lines
			}
			if length++; length == lines+1 {
				t.Errorf("%s: a paragraph has more than %d lines, up to: %.60s", name, lines, line)
			}
		}
	}
}

// TestWrapping finds lines of a paragraph that Markdown does not read as text of it, such as a line
// that begins with "1. ", and blocks of code whose first line is indented more than a later one.
func TestWrapping(t *testing.T) {
	t.Parallel()
	for name, text := range pages(t) {
		lines := strings.Split(fence.ReplaceAllString(text, ""), "\n")
		first := -1 // indentation of the first line of a block of code; -1: outside
		inList := false
		for i, line := range lines {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			paragraph := i > 0 && lines[i-1] != "" && !unwrapped.MatchString(lines[i-1])
			switch {
			case line == "":
				continue
			case indent == 0:
				inList = listItem.MatchString(line) || inList && paragraph
				first = -1
			case inList || indent < 4:
				first = -1
			case first < 0:
				first = indent
			case indent < first:
				t.Errorf("%s: the first line of a block of code is indented more than this one: %.60s", name, line)
			}
			if misread.MatchString(line) && paragraph && indent == 0 && !listItem.MatchString(lines[i-1]) && !strings.HasPrefix(lines[i-1], " ") {
				t.Errorf("%s: Markdown does not read this line as a part of the paragraph: %.60s", name, line)
			}
		}
	}
}

// misread matches lines that end a paragraph in Markdown: list items, headings, quotations, and the
// underline that makes a heading of the line above.
var misread = regexp.MustCompile(`^(1[.)] |[-+*] |#+ |> |=+$)`)

var listItem = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
