package oip

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// TestOpenVJP runs y = 2 x and its gradient by x, 2 dy, on a server that has both models, and
// checks what others say.
func TestOpenVJP(t *testing.T) {
	t.Parallel()
	const model = `{"name": "double", "versions": ["1"], "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}], "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}]}`
	const vjp = `{"name": "double.vjp", "versions": ["1"], "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}, {"name": "cotangent z", "datatype": "FP32", "shape": [-1, 3]},
		{"name": "cotangent y", "datatype": "FP32", "shape": [-1, 3]}], "outputs": [{"name": "gradient x", "datatype": "FP32", "shape": [-1, 3]}]}`
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in wireRequest
		if err := json.NewDecoder(strings.NewReader(string(body))).Decode(&in); err != nil {
			t.Error(err)
		}
		rest := body[strings.LastIndex(string(body), "}")+1:]
		var out []wireTensor
		for i, t := range in.Inputs {
			values, left, err := t.values(rest)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			rest = left
			for k := range values {
				values[k] *= 2
			}
			data, _ := json.Marshal(values)
			out = append(out, wireTensor{Name: []string{"y", "gradient x"}[i], Shape: t.Shape, Datatype: "FP32", Data: data})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"outputs": out})
	}
	for name, c := range map[string]struct{ vjp, want, version string }{
		"both":         {vjp, "", ""},
		"a version":    {vjp, "", "3"},
		"no gradients": {"", "would have to serve them as a second model", ""},
		"any name":     {model, "has no output whose name begins with", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				version := ""
				if c.version != "" {
					version = "/versions/" + c.version
				}
				text := map[string]string{"/v2/models/double" + version: model, "/v2/models/double.vjp" + version: c.vjp}[strings.TrimSuffix(r.URL.Path, "/infer")]
				switch {
				case text == "":
					http.NotFound(w, r)
				case r.Method == http.MethodPost:
					answer(w, r)
				default:
					fmt.Fprint(w, text)
				}
			}))
			t.Cleanup(h.Close)
			n, err := Open(t.Context(), h.URL+"/v2/models/double", Options{Version: c.version})
			if err != nil {
				t.Fatal(err)
			}
			request := engine.Request{Outputs: []engine.Output{{Name: "y", Shape: []int{3}}}}
			s, err := n.OpenVJP(t.Context(), request, "x")
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(n.NoVJP(), c.want) {
					t.Fatalf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil || n.NoVJP() != "" {
				t.Fatal(err, n.NoVJP())
			}
			if names := s.Inputs(); !slices.Equal(names, []string{"x", "cotangent y"}) {
				t.Errorf("inputs %v", names)
			}
			x, dy := tensor.Tensor{Shape: []int{2, 3}, Data: []float32{0, 1, 2, 3, 4, 5}}, tensor.Tensor{Shape: []int{2, 3}, Data: []float32{5, 4, 3, 2, 1, 0}}
			y, dx := &engine.Array{}, &engine.Array{}
			if err := s.Run(t.Context(), engine.Batch{Inputs: []*engine.Array{engine.ArrayOf(x), engine.ArrayOf(dy)}, Outputs: []*engine.Array{y, dx}}); err != nil {
				t.Fatal(err)
			}
			if got := y.Tensor().Data; !slices.Equal(got, []float32{0, 2, 4, 6, 8, 10}) {
				t.Errorf("y = %v", got)
			}
			if got := dx.Tensor().Data; !slices.Equal(got, []float32{10, 8, 6, 4, 2, 0}) {
				t.Errorf("gradient %v", got)
			}
			if _, err := n.OpenVJP(t.Context(), request, "z"); err == nil {
				t.Error("no error for an unknown input")
			}
		})
	}
}
