// Package plural formats counts with their nouns: "1 sample", "3 samples".
package plural

import "strconv"

// Of returns a count and its noun, which is given in the singular and takes an s.
func Of(n int, noun string) string { return strconv.Itoa(n) + " " + Noun(n, noun) }

// Noun returns the noun for a count.
func Noun(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
