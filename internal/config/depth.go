package config

import "bytes"

// maxNesting bounds the depth of nesting of a YAML text. The memory of the parser grows with the
// square of the depth.
const maxNesting = 500

// deepLine returns the number of the first line at which a YAML text may be nested deeper than
// maxNesting, or 0. It counts brackets, dashes and indentation without parsing. Brackets in quotes
// count too, but settings do not have hundreds of those without a closing one.
func deepLine(data []byte) int {
	open, number := 0, 0
	for line := range bytes.Lines(data) {
		number++
		text := bytes.TrimLeft(line, " -?\t")
		// A level mostly takes two columns: spaces, or a dash and a space. Of levels of one column,
		// twice as many are allowed.
		if len(line)-len(text) > 2*maxNesting {
			return number
		}
		for _, c := range text {
			switch c {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			}
			if open > maxNesting {
				return number
			}
		}
	}
	return 0
}
