package dataset

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labelsOf converts labels to indices into classes, and empty labels to NoLabel. If all labels are
// whole numbers, perhaps written as floats, they are the indices. If all are numbers, but some are
// not whole or below NoLabel, it returns an error. Otherwise classes are the sorted labels. A label
// with control characters is an error: it is binary, or text in another encoding.
func labelsOf(texts []string) (labels []int, classes []string, err error) {
	texts = slices.Clone(texts)
	for i, text := range texts {
		if texts[i] = strings.TrimSpace(text); !utf8.ValidString(text) || strings.ContainsFunc(texts[i], unicode.IsControl) {
			return nil, nil, fmt.Errorf("label %.40q has control characters or is not UTF-8: labels are text", text)
		}
	}
	if labels, highest, ok, err := wholeNumbers(texts); ok || err != nil {
		return labels, numberNames(highest), err
	}
	for _, text := range texts {
		if text != "" {
			classes = append(classes, text)
		}
	}
	classes = distinct(classes)
	for _, text := range texts {
		i, ok := slices.BinarySearch(classes, text)
		if !ok {
			i = NoLabel
		}
		labels = append(labels, i)
	}
	return labels, classes, nil
}

// distinct returns the sorted texts, each once.
func distinct(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}

// decimal matches numbers as programs write labels: 3, 3.0, 3.000e+00, 1e-09, inf. Texts such as 1e5,
// which may be part of a hexadecimal name, are none.
var decimal = regexp.MustCompile(`^[+-]?(?:\d+(?:\.\d*(?:[eE][+-]?\d+)?|[eE][+-]\d+)?|(?i:inf|infinity))$`)

// missingLabels are texts that programs write for a number that is missing.
var missingLabels = []string{"", "nan", "na", "n/a", "<na>", "null", "none"}

// wholeNumbers parses labels, each of which must be missing or a whole number from NoLabel to
// maxLabel; otherwise ok is false. highest is the largest of them, or NoLabel if none is a number.
// It is an error if all are numbers, but one is not whole or below NoLabel, or only some are above
// maxLabel.
func wholeNumbers(texts []string) (labels []int, highest int, ok bool, err error) {
	highest = NoLabel
	numbers, above := 0, 0
	wrong, large := "", ""
	for _, text := range texts {
		n := NoLabel
		switch {
		case slices.Contains(missingLabels, strings.ToLower(text)):
		case !decimal.MatchString(text):
			return nil, 0, false, nil
		default:
			numbers++
			v, _ := strconv.ParseFloat(text, 64) // infinity beyond its range
			switch {
			case v != math.Trunc(v), v < NoLabel, math.IsInf(v, 0):
				wrong = cmp.Or(wrong, text)
			case v > maxLabel:
				large = text
				above++
			default:
				n = int(v)
			}
		}
		labels = append(labels, n)
		highest = max(highest, n)
	}
	switch {
	case wrong != "":
		return nil, 0, false, fmt.Errorf("label %q is not a whole number from 0, or -1 or nothing where there is no label", wrong)
	case above > 0 && above < numbers:
		return nil, 0, false, fmt.Errorf("label %q is above %d, the largest number of a class", large, maxLabel)
	case above > 0:
		return nil, 0, false, nil // identifiers, which are names
	}
	if numbers == 0 && slices.ContainsFunc(texts, func(text string) bool { return text != "" }) {
		return nil, 0, false, nil // a class named nan or none
	}
	return labels, highest, true, nil
}

// isMissing reports whether the value of a factor is missing.
func isMissing(text string) bool { return text == "" || strings.EqualFold(text, "nan") }

// factorValues parses a factor as numbers or as categories. If only some texts are numbers, bad is
// the index of the first that is not a number. Otherwise bad is -1.
func factorValues(texts []string) (values []float64, categories []string, bad int) {
	bad = -1
	for i, text := range texts {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			if bad < 0 {
				bad = i
			}
			continue
		}
		values = append(values, v)
	}
	if bad < 0 || len(values) > 0 {
		return values, nil, bad
	}
	categories = distinct(texts)
	for _, text := range texts {
		at, _ := slices.BinarySearch(categories, text)
		values = append(values, float64(at))
	}
	return values, categories, -1
}
