package plainjson

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
)

type example struct {
	Text   string
	Ints   []int
	Floats []float64
}

// text returns what encoding/json writes for an example.
func (e example) text() []byte {
	raw, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return raw
}

// scanExample reads the text of an example.
func scanExample(raw []byte) (e example, ok bool) {
	e.Ints, e.Floats = []int{}, []float64{}
	s := Scanner{Rest: raw}
	s.Want(`{"Text":`)
	text := s.Quoted()
	e.Text = string(text)
	s.Want(`,"Ints":`)
	s.List(func() { e.Ints = append(e.Ints, s.Int()) })
	s.Want(`,"Floats":`)
	s.List(func() { e.Floats = append(e.Floats, s.Float()) })
	s.Want("}")
	return e, s.Done() && IsPlain(text)
}

func TestTextOfEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, e := range []example{
		{"", []int{}, []float64{}},
		{"conv 1 \x00 \"<é>\\", []int{0, -1, math.MaxInt}, []float64{0, math.Copysign(0, -1), 1e-7, -2.5e-10, 1e21, 1e300, 123456.75, math.MaxFloat64, math.SmallestNonzeroFloat64}},
		{"é", []int{7}, []float64{1e20, 1e-6}},
	} {
		got := e.text()
		again, ok := scanExample(got)
		if !ok {
			if e.Text != "conv 1 \x00 \"<é>\\" { // it has escapes
				t.Errorf("%s is not read", got)
			}
		} else if text := again.text(); !bytes.Equal(text, got) {
			t.Errorf("read %s, want %s", text, got)
		}
	}
}

// TestOtherTexts checks that no text but that of a writer is read.
func TestOtherTexts(t *testing.T) {
	t.Parallel()
	text := (example{"a", []int{1, -20}, []float64{0.5, 1e-9}}).text()
	for n := range text {
		if _, ok := scanExample(text[:n]); ok {
			t.Errorf("%s is read", text[:n])
		}
	}
	for _, other := range []string{
		`{"Text": "a","Ints":[],"Floats":[]}`, `{"Text":"a","Ints":[],"Floats":[]} `, `{"Text":"a\n","Ints":[],"Floats":[]}`,
		`{"Text":"a","Ints":[1.5],"Floats":[]}`, `{"Text":"a","Ints":[+1],"Floats":[]}`, `{"Text":"a","Ints":[1,],"Floats":[]}`,
		`{"Text":"a","Ints":[],"Floats":[.5]}`, `{"Text":"a","Ints":[],"Floats":[NaN]}`, `{"Text":"a","Ints":[],"Floats":[0x1]}`,
		`{"Text":"a","Ints":[01],"Floats":[]}`, "{\"Text\":\"\xff\",\"Ints\":[],\"Floats\":[]}",
	} {
		if _, ok := scanExample([]byte(other)); ok {
			t.Errorf("%q is read", other)
		}
	}
}
