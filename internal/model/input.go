package model

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/tensor"
)

// An input describes the input or inputs that take samples. A waveform has the shape c x 1 x
// length, and the vector of all arrays of a sample 1 x 1 x length.
type input struct {
	info                    engine.Port  // of arrays, the first
	arrays                  []arrayInput // nil for images and waveforms
	layout                  tensor.Axes  // "NCHW", "NHWC"; audio: "NT", "NCT", "NTC" (T: time)
	audio                   bool
	channels, height, width int
	frame                   dataset.Frame
	preprocess              Preprocess
}

// shape returns the shape of one image, c x h x w, one waveform, c x n, or the vector of arrays.
func (p input) shape() []int {
	switch {
	case p.arrays != nil:
		return []int{p.width}
	case p.audio:
		return []int{p.channels, p.width}
	}
	return []int{p.channels, p.height, p.width}
}

func (p input) batchShape(n int) []int {
	switch p.layout {
	case "NHWC":
		return []int{n, p.height, p.width, p.channels}
	case layoutWave:
		return []int{n, p.width}
	case layoutChannel:
		return []int{n, p.channels, p.width}
	case layoutLast:
		return []int{n, p.width, p.channels}
	}
	return []int{n, p.channels, p.height, p.width}
}

// maxInputValues bounds the values of a sample to 1 GiB of float32: a small file may declare an
// input that no machine can hold.
const maxInputValues = 1 << 28

// It is a float because it may exceed an int.
func (p input) values() float64 {
	n := 1.
	for _, d := range p.shape() {
		n *= float64(d)
	}
	return n
}

func (m *Model) findInputs() error {
	o := m.options
	if len(m.inputs) == 0 && m.source == nil {
		return nil // it looks activations up
	}
	if o.Arrays != nil {
		return m.findArrays()
	}
	if o.Preprocess.Features != nil {
		// It names the input for spectrograms, which withFeatures has replaced by one for waveforms.
		o.Input = ""
	}
	info, layout, isAudio := findAudioInput(m.inputs, o)
	construct := newAudioInput
	if !isAudio || !o.wantsAudio() {
		found, axes, err := findImageInput(m.inputs, o)
		switch {
		case err == nil:
			info, layout, construct = found, axes, newImageInput
		case !isAudio || tooShort(info) && !o.wantsAudio():
			return err
		}
	}
	var err error
	m.batch = max(info.Shape[0].Size, 0) // 0: of any size
	if m.input, err = construct(info, layout, o); err != nil {
		return settingError(err, "preprocess")
	}
	if values := m.input.values(); values > maxInputValues {
		return fmt.Errorf("input %s takes %.3g values of one sample: the limit is %d", describeInput(info), values, maxInputValues)
	}
	m.constants, err = constantInputs(m.inputs, []string{info.Name}, m.options.Inputs, nil)
	return settingError(err, "inputs")
}

func findImageInput(inputs []engine.Port, o Options) (engine.Port, tensor.Axes, error) {
	if l := o.Layout; l != "" && l != "NCHW" && l != "NHWC" {
		return engine.Port{}, "", settingError(fmt.Errorf("unknown layout %q: use NCHW or NHWC", l), "layout")
	}
	if len(inputs) == 0 {
		return engine.Port{}, "", errors.New("the model has no input")
	}
	var found []engine.Port
	for _, in := range inputs {
		_, fixed := o.Inputs[in.Name]
		if o.Input == "" && !fixed && layoutOf(in, tensor.Axes(o.Layout)) != "" || in.Name == o.Input {
			found = append(found, in)
		}
	}
	switch {
	case len(found) > 1:
		return engine.Port{}, "", fmt.Errorf("several inputs can take an image (%s): set input to one of them, and inputs to the values of the others", list(found))
	case len(found) == 0 && o.Input != "":
		return engine.Port{}, "", settingError(fmt.Errorf("unknown input %q: it has %s", o.Input, list(inputs)), "input")
	case len(found) == 0:
		return engine.Port{}, "", fmt.Errorf("no input takes an image (float, double or uint8 of rank 4 with 1 or 3 channels) or a waveform (float of rank 2, or 3 with 1 channel): it has %s, which may take arrays as they are (layout: raw)", list(inputs))
	}
	layout := layoutOf(found[0], tensor.Axes(o.Layout))
	if layout == "" {
		return engine.Port{}, "", fmt.Errorf("input %s does not take an image: it must be float, double or uint8 of rank 4 with 1 or 3 channels%s", describeInput(found[0]), textIf(o.Layout != "", " in layout "+o.Layout))
	}
	return found[0], layout, nil
}

// layoutOf returns the layout in which an input can take an image, or ""; requested is "" for both.
func layoutOf(in engine.Port, requested tensor.Axes) tensor.Axes {
	switch in.Type {
	case engine.Float, engine.Double, engine.Uint8:
	default:
		return ""
	}
	if len(in.Shape) != 4 {
		return ""
	}
	first, last := channelAxis(in.Shape[1]), channelAxis(in.Shape[3])
	switch {
	case requested == "NCHW" && first != no, requested == "" && first == yes, requested == "" && first == maybe && last == no:
		return "NCHW"
	case requested == "NHWC" && last != no, requested == "" && last == yes, requested == "" && last == maybe && first == no:
		return "NHWC"
	case requested == "" && first == maybe:
		return "NCHW" // no axis is fixed: the layout of PyTorch, which exports such graphs
	}
	return ""
}

// An answer says whether an axis can hold channels, as far as its size and its name tell.
type answer int

const (
	no answer = iota
	maybe
	yes
)

func channelAxis(d engine.Dim) answer {
	switch symbol := strings.ToLower(d.Symbol); {
	case d.Size == 1, d.Size == 3, d.Size < 0 && strings.Contains(symbol, "channel"):
		return yes
	case d.Size >= 0, strings.Contains(symbol, "height"), strings.Contains(symbol, "width"):
		return no
	}
	return maybe
}

// newImageInput describes an input that takes images, with their frame.
func newImageInput(info engine.Port, layout tensor.Axes, o Options) (input, error) {
	p := input{info: info, layout: layout, preprocess: o.Preprocess, frame: o.Preprocess.Frame}
	dims := info.Sizes()
	c, h, w := dims[1], dims[2], dims[3]
	if layout == "NHWC" {
		h, w, c = dims[1], dims[2], dims[3]
	}
	var err error
	if p.channels, err = reconcile("channels", c, p.frame.Channels, info); err != nil {
		return p, err
	}
	p.channels = cmp.Or(p.channels, 3)
	p.frame.Channels = p.channels
	if p.frame.Height, err = reconcile("height", h, p.frame.Height, info); err != nil {
		return p, err
	}
	if p.frame.Width, err = reconcile("width", w, p.frame.Width, info); err != nil {
		return p, err
	}
	// Square: both sides are resized to Resize. Height and Width are those of the crop; 0: no crop.
	if p.frame.Square && p.frame.Height == 0 && p.frame.Width == 0 {
		p.frame.Height, p.frame.Width = p.frame.Resize, p.frame.Resize
	}
	p.height, p.width = p.frame.Height, p.frame.Width
	p.height = cmp.Or(p.height, o.Size[0])
	p.width = cmp.Or(p.width, o.Size[1])
	if p.height <= 0 || p.width <= 0 {
		return p, fmt.Errorf("input %s does not fix the size of images: set preprocess: {crop: 224}, or another size", describeInput(info))
	}
	if info.Type == engine.Uint8 && p.preprocess.Range == [2]float32{} {
		p.preprocess.Range = [2]float32{0, 255}
	}
	return p, p.preprocess.Check(p.channels)
}

// reconcile returns the size that the model (negative: any) or the preprocessing (0: any) fixes, or
// an error if they differ. what is "channels", "height", "width" or "length".
func reconcile(what string, model, preprocess int, info engine.Port) (int, error) {
	switch {
	case model < 0:
		return preprocess, nil
	case model == 0:
		return 0, fmt.Errorf("input %s has an axis of size 0", describeInput(info))
	case preprocess != 0 && preprocess != model:
		key, made := "crop", "images"
		switch what {
		case "channels":
			key = what
		case "length":
			key, made = what, "audio"
		}
		return 0, &preprocessing.KeyError{Key: key, Err: fmt.Errorf("preprocess makes %s of %s %d, and input %s takes %d: set preprocess: {..., %s: %d}", made, what, preprocess, describeInput(info), model, key, model)}
	}
	return model, nil
}

// fill writes samples to the named inputs, in parallel, because the engine waits for it.
func (p input) fill(images []tensor.Tensor, dst []*engine.Array) {
	workers := min(runtime.GOMAXPROCS(0), len(images))
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(images); i += workers {
				if p.arrays != nil {
					p.fillArrays(images[i].Data, dst, i)
				} else {
					p.fillOne(images[i], dst[0], i)
				}
			}
		})
	}
	wait.Wait()
}

// channelsLast reports whether the values of a pixel, or of a moment, follow each other.
func (p input) channelsLast() bool { return p.layout == "NHWC" || p.layout == layoutLast }

func (p input) fillOne(t tensor.Tensor, dst *engine.Array, i int) {
	n := t.Len()
	if p.info.Type == engine.Float && !p.channelsLast() {
		p.preprocess.Normalise(dst.Data.([]float32)[i*n:(i+1)*n], t)
		return
	}
	normal := make([]float32, n)
	p.preprocess.Normalise(normal, t)
	switch p.info.Type {
	case engine.Float:
		convertLayout(dst.Data.([]float32)[i*n:(i+1)*n], normal, p, func(v float32) float32 { return v })
	case engine.Double:
		convertLayout(dst.Data.([]float64)[i*n:(i+1)*n], normal, p, func(v float32) float64 { return float64(v) })
	case engine.Uint8:
		convertLayout(dst.Data.([]uint8)[i*n:(i+1)*n], normal, p, toByte)
	}
}

func toByte(v float32) uint8 { return uint8(min(max(v, 0), 255) + 0.5) }

func convertLayout[T float32 | float64 | uint8](dst []T, src []float32, p input, convert func(float32) T) {
	if !p.channelsLast() {
		for i, v := range src {
			dst[i] = convert(v)
		}
		return
	}
	n := p.height * p.width
	for c := range p.channels {
		for i, v := range src[c*n : (c+1)*n] {
			dst[i*p.channels+c] = convert(v)
		}
	}
}

func (p input) check(t tensor.Tensor) error {
	if slices.Equal(t.Shape, p.shape()) || p.info.Name == "" {
		return nil
	}
	if p.arrays != nil {
		return fmt.Errorf("takes samples of %d values, not of %s", p.width, shapeText(t.Shape))
	}
	anySize := !p.audio && (p.frame.Height == 0 || p.frame.Width == 0)
	return fmt.Errorf("takes images of %s, not of %s%s", shapeText(p.shape()), shapeText(t.Shape),
		textIf(anySize, ": it takes any size, but one for all, to which preprocess: {resize: 256, crop: 224} brings them"))
}

func shapeText(shape []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", " x ")
}

func list(ports []engine.Port) string {
	texts := make([]string, len(ports))
	for i, p := range ports {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

func describeInput(p engine.Port) string {
	return fmt.Sprintf("%q (%s)", p.Name, strings.TrimPrefix(p.String(), p.Name+" "))
}
