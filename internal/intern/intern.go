// Package intern keeps strings that occur again and again, such as those of a column of a table, in
// memory once.
package intern

// Texts holds strings.
type Texts map[string]string

// maxTexts is the number of strings that a Texts holds at most.
const maxTexts = 1 << 14

// Of returns a string with the given bytes, and false if valid rejects them. Strings that t holds
// are not checked again.
func (t Texts) Of(b []byte, valid func([]byte) bool) (string, bool) {
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

// Columns holds the strings of a table that is read row by row.
type Columns struct {
	known Texts
	// last has the string in each column of the row before, which is often repeated. Of the tables
	// that are read in this way, scores.csv has the most columns, 20.
	last [20]string
}

// NewColumns returns Columns without strings.
func NewColumns() *Columns { return &Columns{known: Texts{}} }

// Text returns the string with the given bytes in a column.
func (c *Columns) Text(column int, b []byte) string {
	last := &c.last[column]
	if string(b) != *last {
		*last, _ = c.known.Of(b, func([]byte) bool { return true })
	}
	return *last
}
