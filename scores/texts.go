package scores

import "sync"

// texts interns strings that occur again and again in the files of a run, such as the names of
// models and statistics: each of them is in memory once.
type texts map[string]string

// maxTexts is the number of strings that a texts holds at most.
const maxTexts = 1 << 14

// of returns a string with the given bytes, and false if valid rejects them. Strings that t holds
// are not checked again.
func (t texts) of(b []byte, valid func([]byte) bool) (string, bool) {
	if known, ok := t[string(b)]; ok { // the conversion makes no copy
		return known, true
	}
	if !valid(b) {
		return "", false
	}
	if len(t) >= maxTexts {
		clear(t)
	}
	text := string(b)
	t[text] = text
	return text, true
}

// knownTexts is a pool of texts, of which each goroutine takes its own.
var knownTexts = sync.Pool{New: func() any { return texts{} }}

// columnTexts holds the strings of a table that is read row by row.
type columnTexts struct {
	known texts
	// last has the string in each column of the row before, which is often repeated. Of the tables
	// that are read in this way, scores.csv has the most columns, 20.
	last [20]string
}

// text returns the string with the given bytes in a column.
func (c *columnTexts) text(column int, b []byte) string {
	last := &c.last[column]
	if string(b) != *last {
		*last, _ = c.known.of(b, func([]byte) bool { return true })
	}
	return *last
}
