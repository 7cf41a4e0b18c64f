// Command pixels prints what a preprocessing makes of an image or a waveform. The tests of python/
// compare it with transformers, torchvision and timm.
//
// It reads lines of JSON: the key preprocess of a study or the path of a processor's config, and
// the path of a PNG file or of a waveform of float32. To each it answers with a line of JSON: the
// shape and the values as bytes of float32, or the error.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/png"
	"os"

	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/tensor"
)

type question struct {
	Config   string // as of the flag --preprocess
	Image    string // a PNG file
	Waveform string // float32, little-endian
}

type answer struct {
	Shape  []int  `json:"shape,omitempty"`
	Values []byte `json:"values,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, "pixels:", err)
			os.Exit(1)
		}
		var a answer
		t, err := preprocess(q)
		if err != nil {
			a.Error = err.Error()
		} else {
			a.Shape = t.Shape
			a.Values, _ = binary.Append(nil, binary.LittleEndian, t.Data) // float32 cannot fail
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, "pixels:", err)
			os.Exit(1)
		}
	}
}

// preprocess returns the model's input: an image of c x h x w, or a waveform of 1 x n.
func preprocess(q question) (tensor.Tensor, error) {
	p, _, err := open.PreprocessFor(q.Config, "")
	if err != nil {
		return tensor.Tensor{}, err
	}
	in, err := read(q, p)
	if err != nil {
		return tensor.Tensor{}, err
	}
	out := tensor.New(in.Shape...)
	p.Normalise(out.Data, in)
	return out, nil
}

func read(q question, p preprocessing.Settings) (tensor.Tensor, error) {
	path := q.Image
	if q.Waveform != "" {
		path = q.Waveform
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return tensor.Tensor{}, err
	}
	if q.Waveform != "" {
		t := tensor.New(1, len(data)/4)
		_, err := binary.Decode(data, binary.LittleEndian, t.Data)
		return t, err
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return tensor.Tensor{}, err
	}
	return p.Frame.Image(img)
}
