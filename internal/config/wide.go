package config

import "bytes"

// maxKeys bounds the number of keys of a YAML block mapping, which has each key on a line of its
// own. The time and the memory of the parser grow with the square of the number of keys: 20,000
// take seconds. A mapping in a study or training file has fewer than a hundred.
const maxKeys = 5000

// wideLine returns the number of the first line at which a block mapping of a YAML text may have
// more than maxKeys keys, or 0. It compares indentation without parsing, so lines of a multi-line
// string that look like keys are counted too.
func wideLine(data []byte) int {
	type mapping struct{ column, keys int }
	var open []mapping // with ascending columns
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text := bytes.TrimLeft(line, " ")
		column := len(line) - len(text)
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		for len(open) > 0 && open[len(open)-1].column > column {
			open = open[:len(open)-1]
		}
		for bytes.HasPrefix(text, []byte("- ")) { // an item, which may be a mapping of its own
			rest := bytes.TrimLeft(text[1:], " ")
			column += len(text) - len(rest)
			text = rest
		}
		if !bytes.Contains(text, []byte(": ")) && text[len(text)-1] != ':' {
			continue
		}
		if len(open) == 0 || open[len(open)-1].column < column {
			open = append(open, mapping{column: column})
		}
		top := &open[len(open)-1]
		if top.keys++; top.keys > maxKeys {
			return number
		}
	}
	return 0
}
