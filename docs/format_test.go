package docs

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// free matches lines that are not wrapped: tables, headings, images, HTML and code.
var free = regexp.MustCompile(`^(\s*\||#|!\[|<|\s{4,}\S)`)

// TestFormat holds pages to lines of at most 100 columns and paragraphs of at most five lines,
// tables and code excepted.
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

// TestWrapping finds lines of a paragraph that Markdown reads as something else, such as "1. ", and
// blocks of code whose first line is indented more than a later one.
func TestWrapping(t *testing.T) {
	t.Parallel()
	for name, text := range pages(t) {
		lines := strings.Split(fence.ReplaceAllString(text, ""), "\n")
		first := -1 // indentation of the first line of a block of code; -1: outside
		inList := false
		for i, line := range lines {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			paragraph := i > 0 && lines[i-1] != "" && !free.MatchString(lines[i-1])
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

// misread matches lines that end a paragraph.
var misread = regexp.MustCompile(`^(1[.)] |[-+*] |#+ |> |=+$)`)

var listItem = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
