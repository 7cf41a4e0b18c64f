package scores

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/noether-ml/noether/measure"
)

// scanCell decodes a cell (the scores of one measure for one model, data set, transformation value
// and trial; a trial is a repetition of all random draws) from JSON that is laid out exactly as
// WriteCell writes it: fields in order, no spaces and no escapes. It returns false for any other
// text, which may still be a valid cell. It takes a quarter of the time of encoding/json, and a
// study may have 100,000 cells.
func scanCell(data []byte) (Cell, bool) {
	known := knownTexts.Get().(texts)
	defer knownTexts.Put(known)
	s := &cellScanner{rest: data, texts: known}
	var c Cell
	s.want(`{"format":1,"measure":`)
	c.Measure = s.text()
	s.want(`,"model":`)
	c.Model = s.text()
	c.OtherModel = s.optional(`,"other_model":`)
	s.want(`,"data":`)
	c.Data = s.text()
	c.Transform = s.optional(`,"transform":`)
	c.Parameter = s.optional(`,"parameter":`)
	c.Drawn = s.optional(`,"drawn":`)
	s.want(`,"trial":`)
	c.Trial = s.int()
	s.want(`,"layers":`)
	s.list(func() { c.Layers = append(c.Layers, s.layer()) })
	if s.take(`,"peak_memory":`) {
		c.PeakMemory = int64(s.int())
	}
	if s.take(`,"files":{`) {
		c.Files = map[string]FileSum{}
		for ok := true; ok && !s.failed; ok = s.take(",") {
			suffix := s.text()
			s.want(`:{"size":`)
			sum := FileSum{Size: int64(s.int())}
			s.want(`,"crc":`)
			sum.CRC32C = s.checksum()
			s.want("}")
			c.Files[suffix] = sum
		}
		s.want("}")
	}
	if s.take(`,"crc32c":`) {
		s.checksum()
	}
	s.want("}")
	s.take("\n")
	// MeanOverTrials, -1, is the lowest value of Trial.
	valid := !s.failed && len(s.rest) == 0 && c.Measure != "" && c.Model != "" && c.Data != "" && c.Trial >= MeanOverTrials
	return c, valid
}

// A cellScanner reads the parts of a cell's text in order. After a failure it reads nothing.
type cellScanner struct {
	rest   []byte
	failed bool
	texts  texts // strings read before, which are shared
}

// take skips a text and reports whether it was there.
func (s *cellScanner) take(text string) bool {
	if s.failed || len(s.rest) < len(text) || string(s.rest[:len(text)]) != text {
		return false
	}
	s.rest = s.rest[len(text):]
	return true
}

// want skips a text that must be there.
func (s *cellScanner) want(text string) {
	if !s.take(text) {
		s.failed = true
	}
}

// text reads a string without escapes.
func (s *cellScanner) text() string {
	text, valid := s.texts.of(s.quoted(), isPlain)
	s.failed = s.failed || !valid
	return text
}

// quoted reads the bytes up to the end of a string.
func (s *cellScanner) quoted() []byte {
	s.want(`"`)
	end := bytes.IndexByte(s.rest, '"')
	if s.failed || end < 0 {
		s.failed = true
		return nil
	}
	text := s.rest[:end]
	s.rest = s.rest[end+1:]
	return text
}

// checksum reads a string that is not kept in s.texts, since it does not occur again.
func (s *cellScanner) checksum() string {
	text := s.quoted()
	s.failed = s.failed || !isPlain(text)
	return string(text)
}

// isPlain reports whether the bytes between the quotes of a JSON string are its value: UTF-8
// without escapes.
func isPlain(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return b < ' ' || b == '\\' }) && utf8.Valid(text)
}

// optional reads a string after a text, or returns "" if the text is not there. WriteCell leaves
// out empty strings.
func (s *cellScanner) optional(before string) string {
	if !s.take(before) {
		return ""
	}
	return s.text()
}

// list reads a list whose items are read by item.
func (s *cellScanner) list(item func()) {
	s.want("[")
	if s.take("]") {
		return
	}
	for ok := true; ok && !s.failed; ok = s.take(",") {
		item()
	}
	s.want("]")
}

// int reads an integer.
func (s *cellScanner) int() int {
	n, err := strconv.Atoi(string(s.digits()))
	if err != nil {
		s.failed = true
	}
	return n
}

// number reads a number as number.MarshalJSON writes it.
func (s *cellScanner) number() float64 {
	var n number
	for _, text := range []string{"null", `"inf"`, `"-inf"`} {
		if s.take(text) {
			_ = n.UnmarshalJSON([]byte(text)) // never fails for these
			return n.value
		}
	}
	v, err := strconv.ParseFloat(string(s.digits()), 64)
	if err != nil {
		s.failed = true
	}
	return v
}

// digits reads the text of a number in JSON.
func (s *cellScanner) digits() []byte {
	all := s.rest
	s.take("-")
	if !s.take("0") {
		s.skipDigits()
	}
	if s.take(".") {
		s.skipDigits()
	}
	if s.take("e") {
		if !s.take("-") {
			s.take("+")
		}
		s.skipDigits()
	}
	return all[:len(all)-len(s.rest)]
}

// skipDigits skips at least one decimal digit.
func (s *cellScanner) skipDigits() {
	n := 0
	for n < len(s.rest) && '0' <= s.rest[n] && s.rest[n] <= '9' {
		n++
	}
	s.failed = s.failed || n == 0
	s.rest = s.rest[n:]
}

// remainingScores returns the number of scores in the rest of a layer.
func (s *cellScanner) remainingScores() int {
	rest := s.rest
	if end := bytes.Index(rest, []byte("}]}")); end >= 0 {
		rest = rest[:end]
	}
	return max(1, bytes.Count(rest, []byte(`"statistic":`)))
}

func (s *cellScanner) layer() (l Layer) {
	s.want("{")
	if l.Name = s.optional(`"name":`); l.Name != "" {
		s.want(",")
	}
	s.want(`"depth":`)
	l.Depth = s.int()
	l.Other = s.optional(`,"other":`) // the layer that it is compared with
	s.want(`,"scores":`)
	s.list(func() {
		if l.Scores == nil { // room for all, since a score is large
			l.Scores = make([]measure.Score, 0, s.remainingScores())
		}
		l.Scores = append(l.Scores, s.score())
	})
	s.want("}")
	return l
}

func (s *cellScanner) score() (m measure.Score) {
	s.want(`{"statistic":`)
	m.Statistic = s.text()
	m.Variant = s.optional(`,"variant":`)
	m.Parameter = s.optional(`,"parameter":`)
	m.Factor = s.optional(`,"factor":`)
	for _, f := range []struct {
		name  string
		value *float64
	}{{`,"value":`, &m.Value}, {`,"low":`, &m.Low}, {`,"high":`, &m.High}, {`,"null":`, &m.Null}, {`,"min":`, &m.Min}, {`,"max":`, &m.Max}} {
		s.want(f.name)
		*f.value = s.number()
	}
	s.want(`,"n":`)
	m.N = s.int()
	if s.take(`,"warnings":`) {
		s.list(func() { m.Warnings = append(m.Warnings, s.text()) })
	}
	if s.take(`,"replicates":`) { // values of the statistic, each without one part of the samples
		s.list(func() { m.Replicates = append(m.Replicates, measure.Replicate{Value: s.number()}) })
		s.want(`,"left":`) // numbers of observations that the replicates leave out
		i := 0
		s.list(func() {
			if left := s.int(); i < len(m.Replicates) {
				m.Replicates[i].Left = left
			}
			i++
		})
		s.failed = s.failed || i != len(m.Replicates)
	}
	s.want("}")
	s.failed = s.failed || m.Statistic == "" || m.N < 0
	return m
}
