package oip

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// A server is a model of one input, x of n x 3, whose outputs are its double as datatype and the
// mean over the batch, which is no layer. Tests of the Python package run the servers that people
// use.
type server struct {
	datatype string                               // of input and output; "": FP32
	plain    bool                                 // it refuses binary tensors
	silent   bool                                 // its metadata have no outputs
	most     int                                  // samples of a request; 0: any number
	before   func(http.ResponseWriter) (end bool) // called for each request to infer
	change   atomic.Int64                         // is added to the outputs
	requests atomic.Int64                         // to infer
	t        testing.TB
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && s.silent {
		fmt.Fprint(w, `{"name": "double", "versions": [], "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}], "outputs": []}`)
		return
	}
	if r.Method == http.MethodGet {
		fmt.Fprintf(w, `{"name": "double", "versions": ["1"], "platform": "test", "inputs": [{"name": "x", "datatype": %q, "shape": [-1, 3]}],
			"outputs": [{"name": "y", "datatype": %q, "shape": [-1, 3]}]}`, s.datatype, s.datatype)
		return
	}
	s.requests.Add(1)
	if s.before != nil && s.before(w) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	header, _ := strconv.Atoi(r.Header.Get(headerLength))
	refuse := func(status int, text string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": text})
	}
	if s.plain && header > 0 {
		refuse(http.StatusBadRequest, "invalid JSON")
		return
	}
	head := body
	if header > 0 {
		head = body[:header]
	}
	var in wireRequest
	if err := json.Unmarshal(head, &in); err != nil {
		s.t.Errorf("%v: %s", err, head)
	}
	x := in.Inputs[0]
	if s.most > 0 && x.Shape[0] > s.most {
		refuse(http.StatusBadRequest, fmt.Sprintf("batch-size must be <= %d", s.most))
		return
	}
	values, _, err := x.values(body[len(head):])
	if err != nil {
		s.t.Error(err)
	}
	for i := range values {
		values[i] = 2*values[i] + float32(s.change.Load())
	}
	y := wireTensor{Name: "y", Shape: x.Shape, Datatype: s.datatype}
	data := engine.ArrayOf(tensor.Tensor{Shape: x.Shape, Data: values})
	var binaries []byte
	if header > 0 {
		if s.datatype == "INT64" {
			for _, v := range values {
				binaries = binary.LittleEndian.AppendUint64(binaries, uint64(int64(v)))
			}
		} else if binaries, err = appendBinary(nil, data, s.datatype); err != nil {
			s.t.Error(err)
		}
		y.Parameters = map[string]any{"binary_data_size": len(binaries)}
	} else if y.Data, err = appendJSON(nil, data, s.datatype); err != nil {
		s.t.Error(err)
	}
	mean := wireTensor{Name: "mean", Shape: []int{1, 1}, Datatype: "FP32", Data: json.RawMessage("[[0]]")}
	text, err := json.Marshal(map[string]any{"model_name": "double", "outputs": []wireTensor{y, mean}})
	if err != nil {
		s.t.Error(err)
	}
	if header > 0 {
		w.Header().Set(headerLength, strconv.Itoa(len(text)))
	}
	_, _ = w.Write(append(text, binaries...))
}

// open returns the network of a server.
func open(t testing.TB, s *server) *Network {
	t.Helper()
	s.t = t
	if s.datatype == "" {
		s.datatype = "FP32"
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	n, err := Open(t.Context(), h.URL+"/v2/models/double", Options{})
	if err != nil {
		t.Fatal(err)
	}
	n.client.pause = time.Millisecond
	return n
}

func feed(typ engine.Type) engine.Setup {
	return engine.Setup{Samples: []string{"x"}, Feed: func(_ string, n int) (*engine.Array, error) { return engine.NewArray(typ, n, 3), nil }}
}

// double runs the network on 0, 1, 2, ... and checks the output.
func double(t *testing.T, n *Network, samples int) error {
	t.Helper()
	s, err := n.Open(t.Context(), engine.Request{Outputs: []engine.Output{{Name: "y", Shape: []int{3}}}})
	if err != nil {
		t.Fatal(err)
	}
	x, y := engine.NewArray(n.metadata.Inputs[0].Type, samples, 3), engine.NewArray(engine.Float, samples, 3)
	for i := range 3 * samples {
		switch x := x.Data.(type) {
		case []float32:
			x[i] = float32(i)
		case []int64:
			x[i] = int64(i)
		case []uint8:
			x[i] = uint8(i)
		}
	}
	if err := s.Run(t.Context(), engine.Batch{Inputs: []*engine.Array{x}, Outputs: []*engine.Array{y}}); err != nil {
		return err
	}
	for i, v := range y.Tensor().Data {
		if v != float32(2*i) {
			t.Errorf("value %d is %v, want %v", i, v, 2*i)
		}
	}
	return nil
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*server{
		"binary": {}, "JSON": {plain: true}, "FP16": {datatype: "FP16"}, "BF16": {datatype: "BF16"},
		"INT64 as JSON": {datatype: "INT64", plain: true}, "INT64": {datatype: "INT64"}, "UINT8 as JSON": {datatype: "UINT8", plain: true},
		"at most 4": {most: 4}, "at most 1": {most: 1}, "JSON of at most 3": {plain: true, most: 3},
		"without outputs": {silent: true}, "JSON without outputs": {silent: true, plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := open(t, s)
			if len(n.metadata.Outputs) == 0 {
				t.Error("no outputs are known")
			}
			layers, err := n.Layers(t.Context(), feed(n.metadata.Inputs[0].Type))
			if err != nil {
				t.Fatal(err)
			}
			if len(layers.All) != 2 || layers.All[0].Name != "y" || !slices.Equal(layers.All[0].Shape, []int{3}) || layers.All[0].Axes != "NC" || s.most != 1 && layers.All[1].Shape != nil {
				t.Errorf("layers %+v: want y of 3, and mean, which is none", layers.All)
			}
			if want := map[bool]int{true: 1}[s.most == 1]; layers.Batch != want {
				t.Errorf("batch %d, want %d", layers.Batch, want)
			}
			for range 2 {
				if err := double(t, n, 21); err != nil {
					t.Error(err)
				}
			}
			if s.most > 1 && n.largest.Load() > int64(s.most) {
				t.Errorf("%d samples at once, where the server takes %d", n.largest.Load(), s.most)
			}
		})
	}
}

// TestRepeats checks that requests that may succeed later are sent again, and others are not.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status, times int
		want          string // error; "": none
		requests      int64
	}{
		"busy twice":  {http.StatusServiceUnavailable, 2, "", 3},
		"busy always": {http.StatusServiceUnavailable, 99, "503: later (tried 6 times)", 6},
		"too many":    {http.StatusTooManyRequests, 1, "", 2},
		"forbidden":   {http.StatusForbidden, 99, "403: later", 1},
		"no such":     {http.StatusNotFound, 99, "404: later", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen atomic.Int64
			s := &server{}
			n := open(t, s)
			if _, err := n.Layers(t.Context(), feed(engine.Float)); err != nil {
				t.Fatal(err)
			}
			s.requests.Store(0)
			s.before = func(w http.ResponseWriter) bool {
				if seen.Add(1) > int64(c.times) {
					return false
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, `{"error": "later\nand a stack"}`)
				return true
			}
			err := double(t, n, 2)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if got := s.requests.Load(); got != c.requests {
				t.Errorf("%d requests, want %d", got, c.requests)
			}
		})
	}
}

// TestBadAnswers checks that answers that the protocol does not allow are errors of one line.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ header, body, want string }{
		"no JSON":          {"", "<html>", "invalid character"},
		"NaN":              {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 3], "data": [NaN, 0, 0, 0, 0, 0]}]}`, "invalid character 'N'"},
		"no output":        {"", `{"outputs": []}`, `no output "y"`},
		"other shape":      {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4]}]}`, "shape [2 2] for a batch of 2"},
		"too few":          {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 3], "data": [1]}]}`, "1 values for a shape of 6"},
		"a text":           {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": ["a"]}]}`, `the value "a"`},
		"unknown type":     {"", `{"outputs": [{"name": "y", "datatype": "FP8", "shape": [1], "data": [1]}]}`, `type "FP8"`},
		"huge shape":       {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [4000000000, 4000000000], "data": [1]}]}`, "shape [4000000000 4000000000]"},
		"negative":         {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [-1], "data": [1]}]}`, "shape [-1]"},
		"twice":            {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [1], "data": [1]}, {"name": "y", "datatype": "FP32", "shape": [1], "data": [1]}]}`, "twice"},
		"header too large": {"999", `{"outputs": []}`, `"999" for a body of 15 bytes`},
		"too few bytes":    {"all", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 24}}]}`, "24 of 0 bytes"},
		"wrong size":       {"all", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 0}}]}`, "0 bytes for the shape [2 3]"},
		"error":            {"", `{"error": "out of memory"}`, "out of memory"},
		"transposed":       {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 3], "data": [[0, 3], [1, 4], [2, 5]]}]}`, "a list of 2 where the shape [2 3] has 3"},
		"renamed":          {"", `{"outputs": [{"name": "y:0", "datatype": "FP32", "shape": [2, 3], "data": [0, 1, 2, 3, 4, 5]}]}`, `no output "y"`},
		"sample first":     {"", `{"outputs": [{"name": "y", "datatype": "FP32", "shape": [3, 2], "data": [0, 3, 1, 4, 2, 5]}]}`, "shape [3 2] for a batch of 2"},
		"half the bytes":   {"all", `{"outputs": [{"name": "y", "datatype": "FP16", "shape": [2, 3], "parameters": {"binary_data_size": 24}}]}`, "24 of 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{}
			n := open(t, s)
			if _, err := n.Layers(t.Context(), feed(engine.Float)); err != nil {
				t.Fatal(err)
			}
			s.before = func(w http.ResponseWriter) bool {
				if c.header != "" {
					w.Header().Set(headerLength, strings.Replace(c.header, "all", strconv.Itoa(len(c.body)), 1))
				}
				fmt.Fprint(w, c.body)
				return true
			}
			err := double(t, n, 2)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !errors.Is(err, errAnswer) {
				t.Errorf("error %v, want one that contains %q", err, c.want)
			}
		})
	}
}

// TestNumbers checks lists of JSON against shapes.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list  string
		shape []int
		want  string // numbers, or of an error
	}{
		{"[1, 2.5,-3e0\n,4]", []int{2, 2}, "[1 2.5 -3 4]"},
		{"[[1,2],[3,4]]", []int{2, 2}, "[1 2 3 4]"},
		{"[[[1],[2]]]", []int{1, 2, 1}, "[1 2]"},
		{"[true,false,null,1e39]", []int{4}, "[1 0 NaN +Inf]"},
		{"7", nil, "[7]"},
		{"[]", []int{0, 3}, "[]"},
		{"[[1,2],[3,4],[5,6]]", []int{2, 3}, "a list of 2"},
		{"[[1,2,3],[4,5,6]]", []int{3, 2}, "a list of 3"},
		{"[[[1,2,3,4,5,6]]]", []int{2, 3}, "in 3 lists"},
		{"[[1,2,3],4,5,6]", []int{2, 3}, "in 1 lists"},
		{"[1,2,3]", []int{2, 3}, "3 values for a shape of 6"},
		{`["1",2]`, []int{2}, `the value "1"`},
		{`{"a":1}`, []int{1}, "the value"},
	} {
		got, err := numbers(json.RawMessage(c.list), c.shape)
		if text := fmt.Sprint(got); err == nil && text != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v, error %v; want %s", c.list, c.shape, text, err, c.want)
		}
	}
}

func TestMessage(t *testing.T) {
	for body, want := range map[string]string{
		`{"error": "later\nand a stack"}`: "later",
		`{"detail": [1]}`:                 "[1]",
		`{"error": "Traceback (most recent call last):\n  File x\nValueError: no luck\n"}`: "ValueError: no luck",
		"\xff plain\n": "? plain",
	} {
		if got := message([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s := &server{}
	n := open(t, s)
	if _, err := n.Layers(t.Context(), feed(engine.Float)); err != nil {
		t.Fatal(err)
	}
	if err := n.Check(t.Context()); err != nil {
		t.Error(err)
	}
	s.change.Store(1)
	if err := n.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "changed during the run: output y") {
		t.Errorf("error %v for another model", err)
	}
}

// TestBfloat16 checks rounding to the nearest, to even at a tie.
func TestBfloat16(t *testing.T) {
	for v, want := range map[float32]float32{1: 1, -2.5: -2.5, 1.00390625: 1, 1.01171875: 1.015625, 1.0041: 1.0078125, 0: 0, 3.4e38: float32(math.Inf(1))} {
		if got := math.Float32frombits(uint32(bfloat16(v)) << 16); got != want {
			t.Errorf("%v becomes %v, want %v", v, got, want)
		}
	}
	if got := math.Float32frombits(uint32(bfloat16(float32(math.NaN()))) << 16); got == got {
		t.Errorf("NaN becomes %v", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 1], "data": [[1], [null]]}]}`), 0)
	f.Add([]byte(`{"outputs": [{"name": "y", "datatype": "FP16", "shape": [2], "parameters": {"binary_data_size": 4}}]}abcd`), 95)
	f.Add([]byte(`{"outputs": [{"name": "y", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 4}}]}abcd`), 96)
	f.Fuzz(func(t *testing.T, body []byte, header int) {
		if header < 0 || header > len(body) {
			return
		}
		out, order, err := decode(answer{body, header})
		if err == nil && len(out) != len(order) {
			t.Errorf("%d outputs, and %d names", len(out), len(order))
		}
		for name, o := range out {
			if len(o.Data) != tensor.Size(o.Shape) {
				t.Errorf("output %q has %d values and the shape %v", name, len(o.Data), o.Shape)
			}
		}
	})
}
