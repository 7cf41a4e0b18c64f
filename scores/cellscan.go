package scores

import (
	"bytes"
	"sync"

	"github.com/noether-ml/noether/internal/intern"
	"github.com/noether-ml/noether/internal/plainjson"
	"github.com/noether-ml/noether/measure"
)

// scanCell decodes a cell that is laid out exactly as MarshalJSON writes it. It returns false for
// any other text, which may still be a valid cell. It takes a quarter of the time of encoding/json.
func scanCell(data []byte) (Cell, bool) {
	known := knownTexts.Get().(intern.Texts)
	defer knownTexts.Put(known)
	s := &cellScanner{plainjson.Scanner{Rest: data}, known}
	var c Cell
	s.Want(`{"format":1,"measure":`)
	c.Measure = s.sharedText()
	s.Want(`,"model":`)
	c.Model = s.sharedText()
	c.OtherModel = s.optional(`,"other_model":`)
	s.Want(`,"data":`)
	c.Data = s.sharedText()
	c.Transform = s.optional(`,"transform":`)
	c.Parameter = s.optional(`,"parameter":`)
	c.Drawn = s.optional(`,"drawn":`)
	s.Want(`,"trial":`)
	c.Trial = s.Int()
	s.Want(`,"layers":`)
	s.List(func() { c.Layers = append(c.Layers, s.layer()) })
	if s.Take(`,"peak_memory":`) {
		c.PeakMemory = int64(s.Int())
	}
	s.Want("}")
	// MeanOverTrials, -1, is the lowest value of Trial.
	valid := s.Done() && c.Measure != "" && c.Model != "" && c.Data != "" && c.Trial >= MeanOverTrials
	return c, valid
}

// A cellScanner reads a cell's text in order. Want skips a text that must be there, Take one that
// may be. After a failure (Failed) nothing more is read.
type cellScanner struct {
	plainjson.Scanner
	texts intern.Texts // strings read before, which are shared
}

// sharedText reads a string without escapes, which is in memory once.
func (s *cellScanner) sharedText() string {
	text, valid := s.texts.Of(s.Quoted(), plainjson.IsPlain)
	s.Failed = s.Failed || !valid
	return text
}

// optional reads a string after a text, or "" if that, and so the string, is left out.
func (s *cellScanner) optional(before string) string {
	if !s.Take(before) {
		return ""
	}
	return s.sharedText()
}

func (s *cellScanner) number() float64 {
	var n number
	for _, text := range []string{"null", `"inf"`, `"-inf"`} {
		if s.Take(text) {
			_ = n.UnmarshalJSON([]byte(text)) // never fails for these
			return n.value
		}
	}
	return s.Float()
}

func (s *cellScanner) remainingScores() int {
	rest := s.Rest
	if end := bytes.Index(rest, []byte("}]}")); end >= 0 {
		rest = rest[:end]
	}
	return max(1, bytes.Count(rest, []byte(`"statistic":`)))
}

func (s *cellScanner) layer() (l Layer) {
	s.Want("{")
	if l.Name = s.optional(`"name":`); l.Name != "" {
		s.Want(",")
	}
	s.Want(`"depth":`)
	l.Depth = s.Int()
	l.Other = s.optional(`,"other":`) // the layer that it is compared with
	s.Want(`,"scores":`)
	s.List(func() {
		if l.Scores == nil { // room for all, since a score is large
			l.Scores = make([]measure.Score, 0, s.remainingScores())
		}
		l.Scores = append(l.Scores, s.score())
	})
	s.Want("}")
	return l
}

func (s *cellScanner) score() (m measure.Score) {
	s.Want(`{"statistic":`)
	m.Statistic = s.sharedText()
	m.Variant = s.optional(`,"variant":`)
	m.Parameter = s.optional(`,"parameter":`)
	m.Factor = s.optional(`,"factor":`)
	for _, f := range []struct {
		name  string
		value *float64
	}{{`,"value":`, &m.Value}, {`,"low":`, &m.Low}, {`,"high":`, &m.High}, {`,"null":`, &m.Null}, {`,"min":`, &m.Min}, {`,"max":`, &m.Max}} {
		s.Want(f.name)
		*f.value = s.number()
	}
	if s.Take(`,"spread":`) {
		m.Spread = s.Float()
	}
	if s.Take(`,"freedom":`) {
		m.Freedom = s.Float()
	}
	s.Want(`,"n":`)
	m.N = s.Int()
	if s.Take(`,"warnings":`) {
		s.List(func() { m.Warnings = append(m.Warnings, s.sharedText()) })
	}
	if s.Take(`,"replicates":`) { // values of the statistic, each without one part of the samples
		s.List(func() { m.Replicates = append(m.Replicates, measure.Replicate{Value: s.number()}) })
		s.Want(`,"left":`) // numbers of observations that the replicates leave out
		i := 0
		s.List(func() {
			if left := s.Int(); i < len(m.Replicates) {
				m.Replicates[i].Left = left
			}
			i++
		})
		s.Failed = s.Failed || i != len(m.Replicates)
	}
	s.Want("}")
	s.Failed = s.Failed || m.Statistic == "" || m.N < 0
	return m
}

// knownTexts is a pool of texts, of which each goroutine takes its own.
var knownTexts = sync.Pool{New: func() any { return intern.Texts{} }}
