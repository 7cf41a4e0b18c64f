package preprocessing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/filesys"
)

// ReadConfig reads a preprocessor_config.json, video_preprocessor_config.json or
// processor_config.json of a model of the library transformers. The class of the processor, which
// the file names, or else config.json beside it by the model's type, gives the values of missing
// keys. A config without a class is resized, cropped and normalised if it has size, crop_size and
// image_mean. A key that changes the input in a way that Settings cannot represent is an error, and
// so is a key that is not known.
func ReadConfig(path string) (Settings, error) {
	data, err := readBounded(path)
	if err != nil {
		return Settings{}, fmt.Errorf("reading a preprocessor config: %w", err)
	}
	p, err := parseHuggingFace(data, func() string { return classBeside(path) })
	if err != nil {
		return Settings{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return p, nil
}

// HasProcessor reports whether a processor_config.json holds the preprocessing of images, videos or
// audio. Those of older versions only say how the tokens of images and text are joined.
func HasProcessor(path string) bool {
	data, err := readBounded(path)
	if err != nil {
		return false
	}
	var config map[string]json.RawMessage
	return json.Unmarshal(data, &config) == nil && len(nestedConfigs(config)) > 0
}

func readBounded(path string) ([]byte, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const maxBytes = 8 << 20 // older configs of Whisper hold its filters
	return io.ReadAll(io.LimitReader(f, maxBytes))
}

// classBeside returns the class of the image processor for the type of model that config.json
// beside a file names, or "".
func classBeside(path string) string {
	data, err := readBounded(filepath.Join(filepath.Dir(path), "config.json"))
	if err != nil {
		return ""
	}
	var config struct {
		Type string `json:"model_type"`
	}
	if json.Unmarshal(data, &config) != nil || processors().Types[config.Type] == "" {
		return ""
	}
	return processors().Types[config.Type] + "ImageProcessor"
}

// A processorConfig is a config with the defaults of its class. A nil pointer is a missing key.
type processorConfig struct {
	class processorClass

	DoResize      bool         `json:"do_resize"`
	Size          *configSize  `json:"size"`
	Square        bool         `json:"default_to_square"` // a size that is a number is that of both sides
	KeepAspect    bool         `json:"keep_aspect_ratio"`
	Multiple      *float64     `json:"ensure_multiple_of"` // of the sides
	Resample      *int         `json:"resample"`
	CropPct       float64      `json:"crop_pct"`
	DoCenterCrop  bool         `json:"do_center_crop"`
	CropSize      *configSize  `json:"crop_size"`
	DoRescale     bool         `json:"do_rescale"`
	RescaleFactor *float64     `json:"rescale_factor"`
	RescaleOffset bool         `json:"rescale_offset"`
	Offset        bool         `json:"offset"`
	DoNormalize   bool         `json:"do_normalize"`
	Mean          configValues `json:"image_mean"`
	Std           configValues `json:"image_std"`
	IncludeTop    bool         `json:"include_top"`
	DoFlip        bool         `json:"do_flip_channel_order"`
	DoPad         bool         `json:"do_pad"`
	PadSize       *configSize  `json:"pad_size"`
}

// A configSize is a number, two sides, or an object that gives one or two sides, in pixels.
type configSize struct {
	side              int // the plain number; 0: the size is an object
	Shortest, Longest int
	Height, Width     int
}

func (s *configSize) UnmarshalJSON(data []byte) error {
	var sides []int
	if json.Unmarshal(data, &s.side) == nil {
		return s.check()
	}
	if json.Unmarshal(data, &sides) == nil && len(sides) == 2 {
		s.Height, s.Width = sides[0], sides[1]
		return s.check()
	}
	var keys map[string]*int
	if err := json.Unmarshal(data, &keys); err != nil {
		return fmt.Errorf("size %s is not a number or an object of sides", data)
	}
	fields := map[string]*int{"shortest_edge": &s.Shortest, "longest_edge": &s.Longest, "height": &s.Height, "width": &s.Width}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if value := keys[key]; value != nil {
			field, ok := fields[key]
			if !ok {
				return fmt.Errorf("size with %s is not supported: %s", key, stateYourself)
			}
			*field = *value
		}
	}
	return s.check()
}

type configValues []float32

func (v *configValues) UnmarshalJSON(data []byte) error {
	var one float32
	if err := json.Unmarshal(data, (*[]float32)(v)); err == nil || json.Unmarshal(data, &one) != nil {
		return err
	}
	*v = configValues{one}
	return nil
}

func (s *configSize) check() error {
	const maxSide = 1 << 16
	for _, v := range []int{s.side, s.Shortest, s.Longest, s.Height, s.Width} {
		if v < 0 || v > maxSide {
			return fmt.Errorf("size %d is not 1 to %d pixels", v, maxSide)
		}
	}
	if *s == (configSize{}) {
		return fmt.Errorf("size needs shortest_edge, or height and width")
	}
	return nil
}

// nestedConfigs returns the configs of processors that a processor_config.json of transformers 5
// holds, in the order of their names.
func nestedConfigs(config map[string]json.RawMessage) []json.RawMessage {
	var found []json.RawMessage
	for _, key := range []string{"audio_processor", "feature_extractor", "image_processor", "video_processor"} {
		if part := config[key]; len(part) > 0 && part[0] == '{' {
			found = append(found, part)
		}
	}
	return found
}

// parseHuggingFace reads a config. beside returns the name of the class for one that names none.
func parseHuggingFace(data []byte, beside func() string) (Settings, error) {
	var config map[string]json.RawMessage
	if err := json.Unmarshal(data, &config); err != nil {
		return Settings{}, err
	}
	parts := nestedConfigs(config)
	switch len(parts) {
	case 0:
		return parseConfig(config, beside)
	case 1:
		return parseHuggingFace(parts[0], beside)
	}
	first, err := parseHuggingFace(parts[0], beside)
	if err != nil {
		return first, err
	}
	for _, part := range parts[1:] {
		p, err := parseHuggingFace(part, beside)
		if err != nil {
			return p, err
		}
		if !reflect.DeepEqual(p, first) {
			return p, fmt.Errorf("it holds several processors that differ: %s", stateYourself)
		}
	}
	return first, nil
}

// parseConfig reads the config of one processor.
func parseConfig(config map[string]json.RawMessage, beside func() string) (Settings, error) {
	maps.DeleteFunc(config, func(_ string, v json.RawMessage) bool { return string(v) == "null" }) // as a missing key
	class, err := classOf(config, beside)
	if err != nil {
		return Settings{}, err
	}
	if class == nil {
		return parseExtractor(config)
	}
	if err := class.checkKeys(config); err != nil {
		return Settings{}, err
	}
	c := processorConfig{class: *class}
	if err := decode(config, class.defaultsOf(config), &c); err != nil {
		return Settings{}, err
	}
	return c.settings()
}

// decode sets the fields of v from a config and, where it lacks keys, from defaults.
func decode(config, defaults map[string]json.RawMessage, v any) error {
	all := maps.Clone(defaults)
	maps.Copy(all, config)
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// classOf returns the class of a config of images or videos, or nil for audio. The Name is empty if
// neither the config nor beside names a class.
func classOf(config map[string]json.RawMessage, beside func() string) (*processorClass, error) {
	var names struct {
		Image     string          `json:"image_processor_type"`
		Video     string          `json:"video_processor_type"`
		Extractor string          `json:"feature_extractor_type"`
		Rate      json.RawMessage `json:"sampling_rate"`
	}
	if err := decode(config, map[string]json.RawMessage{}, &names); err != nil {
		return nil, err
	}
	if names.Video != "" {
		if c, ok := videoClass(names.Video); ok {
			return &c, nil
		}
	}
	name := cmp.Or(names.Video, names.Image, names.Extractor)
	if names.Rate != nil {
		return nil, nil
	}
	if c, ok := imageClass(name); ok {
		return &c, nil
	}
	if cmp.Or(names.Video, names.Image) == "" && isExtractor(name) {
		return nil, nil
	}
	if name != "" {
		return nil, fmt.Errorf("the processor %s is not known: %s", name, stateYourself)
	}
	c, _ := imageClass(beside())
	return &c, nil
}

func (c processorConfig) is(names ...string) bool { return slices.Contains(names, c.class.short()) }

func (c processorConfig) settings() (Settings, error) {
	for _, key := range c.class.Ignores {
		switch key {
		case "do_center_crop":
			c.DoCenterCrop = false
		case "do_normalize":
			c.DoNormalize = false
		case "do_flip_channel_order":
			c.DoFlip = false
		}
	}
	p := Settings{Frame: dataset.Frame{Channels: 3, Interpolation: "bilinear"}}
	if err := c.frame(&p.Frame); err != nil {
		return p, err
	}
	if err := c.values(&p); err != nil {
		return p, err
	}
	if c.DoFlip {
		p.Order = "bgr"
	}
	return p, p.Check(3)
}

// frame reads resizing and cropping into f. Resize is the shorter side after resizing, and Height
// and Width are the size of the crop; if Resize is 0, the image is resized to Height and Width.
// With Square, both sides are resized to Resize.
func (c processorConfig) frame(f *dataset.Frame) error {
	if c.DoResize {
		if err := c.resize(f); err != nil {
			return err
		}
	}
	if c.DoCenterCrop {
		if err := c.crop(f); err != nil {
			return err
		}
	}
	fixed := f.Height > 0 && f.Width > 0
	padded := c.PadSize != nil && *c.PadSize != configSize{Height: f.Height, Width: f.Width}
	if c.DoPad && (c.class.Pads || !fixed || padded) {
		return fmt.Errorf("do_pad is not supported where it changes the image: %s", stateYourself)
	}
	return nil
}

func (c processorConfig) resize(f *dataset.Frame) error {
	var err error
	if f.Interpolation, err = resampling(c.Resample); err != nil {
		return err
	}
	if f.Interpolation != "bilinear" && c.is("DINOv3ViT") {
		return fmt.Errorf("resample %d of %s is not supported, since it does not round: %s", *c.Resample, c.class.Name, stateYourself)
	}
	if c.Size == nil {
		return fmt.Errorf("do_resize needs size")
	}
	s := *c.Size
	if c.class.Video && c.is("VJEPA2") && c.CropSize != nil {
		// This class replaces size.
		s = configSize{Shortest: max(c.CropSize.side, c.CropSize.Height) * 256 / 224}
	}
	switch {
	case s.side > 0 && c.Square:
		s.Height, s.Width = s.side, s.side
	case s.side > 0:
		s.Shortest = s.side
	}
	switch {
	case s.Longest > 0:
		return fmt.Errorf("size with longest_edge is not supported: %s", stateYourself)
	case s.Shortest > 0 && (s.Height > 0 || s.Width > 0):
		return fmt.Errorf("size has both shortest_edge and height or width")
	case s.Shortest > 0:
		return c.resizeShort(f, s.Shortest)
	case s.Height == 0 || s.Width == 0:
		return fmt.Errorf("size needs both height and width")
	case c.is("ConvNext"):
		return fmt.Errorf("size of %s needs shortest_edge", c.class.Name)
	}
	f.Height, f.Width = s.Height, s.Width
	if c.KeepAspect {
		return fmt.Errorf("keep_aspect_ratio is not supported: %s", stateYourself)
	}
	if c.Multiple != nil && *c.Multiple > 0 {
		multiple := func(side int) int { return int(math.RoundToEven(float64(side) / *c.Multiple) * *c.Multiple) }
		f.Height, f.Width = multiple(s.Height), multiple(s.Width)
	}
	if c.is("PoolFormer") {
		return c.resizeByPercent(f)
	}
	return nil
}

// resizeShort reads a size that is the shorter side. Below 384 pixels ConvNext resizes it to size /
// crop_pct and crops the image to size, and from there on to a square. Levit resizes it to 256/224
// of the size.
func (c processorConfig) resizeShort(f *dataset.Frame, side int) error {
	switch {
	case c.is("Levit"):
		f.Resize = int(256. / 224 * float64(side))
	case c.is("PoolFormer"):
		f.Resize = side
		return c.resizeByPercent(f)
	case c.is("ConvNext"):
		f.Height, f.Width, f.Resize = side, side, side
		if side >= 384 {
			f.Resize = 0
			return nil
		}
		f.FloorCrop = true
		return c.resizeByPercent(f)
	default:
		f.Resize = side
	}
	return nil
}

// resizeByPercent divides the size after resizing by crop_pct. A square without Resize becomes the
// size of the shorter side.
func (c processorConfig) resizeByPercent(f *dataset.Frame) error {
	if c.CropPct < 0.01 || c.CropPct > 1 {
		return fmt.Errorf("crop_pct is %v: it must be above 0 and at most 1", c.CropPct)
	}
	scaled := func(side int) int { return int(float64(side) / c.CropPct) }
	switch {
	case f.Resize > 0:
		f.Resize = scaled(f.Resize)
	case f.Height == f.Width:
		*f = dataset.Frame{Resize: scaled(f.Height), Channels: f.Channels, Interpolation: f.Interpolation}
	default:
		f.Height, f.Width = scaled(f.Height), scaled(f.Width)
	}
	return nil
}

// crop reads a centre crop. A resize to both sides and then a crop of another size is an error
// unless both sides are equal, since a dataset.Frame cannot represent it, and so is a crop of a
// crop.
func (c processorConfig) crop(f *dataset.Frame) error {
	if c.CropSize == nil {
		return fmt.Errorf("do_center_crop needs crop_size")
	}
	s := *c.CropSize
	if s.side > 0 {
		s = configSize{Height: s.side, Width: s.side}
	}
	if s.Height == 0 || s.Width == 0 {
		return fmt.Errorf("crop_size needs height and width")
	}
	short := f.Resize
	if short == 0 {
		short = min(f.Height, f.Width)
	}
	switch resized := f.Resize == 0 && f.Height > 0; {
	case c.is("Vivit") && !c.class.Video && max(s.Height, s.Width) > short:
		return fmt.Errorf("crop_size above size is not supported for %s, which pads otherwise: %s", c.class.Name, stateYourself)
	case resized && f.Height == s.Height && f.Width == s.Width:
		return nil
	case resized && f.Height != f.Width:
		return fmt.Errorf("resizing to %d x %d and then cropping to %d x %d is not supported, only squares are cropped: %s", f.Height, f.Width, s.Height, s.Width, stateYourself)
	case resized:
		f.Resize, f.Square = f.Height, true
	case f.Height > 0 && (f.Height != s.Height || f.Width != s.Width):
		return fmt.Errorf("do_center_crop of %s is not supported: %s", c.class.Name, stateYourself)
	case f.Resize == 0:
		return fmt.Errorf("do_center_crop without do_resize is not supported: %s", stateYourself)
	}
	f.Height, f.Width, f.FloorCrop = s.Height, s.Width, true
	return nil
}

func (c processorConfig) values(p *Settings) error {
	factor := 1. / 255
	if c.RescaleFactor != nil {
		factor = *c.RescaleFactor
	}
	if !c.DoRescale {
		factor = 1
	}
	if !(factor > 0 && factor <= 1) { // bytes times a whole number overflow in the library
		return fmt.Errorf("rescale_factor %v is not above 0 and at most 1: %s", factor, stateYourself)
	}
	if high := float32(255 * factor); high != 1 {
		p.Range = [2]float32{0, high}
	}
	if offset := c.RescaleOffset || c.Offset || c.class.Video && c.is("Vivit"); offset && c.DoRescale {
		p.Range = [2]float32{-1, float32(255*factor) - 1}
	}
	if !c.DoNormalize && !c.IncludeTop {
		return nil
	}
	if len(c.Mean) == 0 || len(c.Std) == 0 {
		return fmt.Errorf("do_normalize needs image_mean and image_std")
	}
	p.Std = slices.Clone(c.Std)
	if c.DoNormalize {
		p.Mean = c.Mean
	}
	if c.DoNormalize && c.IncludeTop {
		// The processor normalises once more, with mean 0 and the same deviation.
		for i, v := range c.Std {
			p.Std[i] = v * v
		}
	}
	return nil
}

// resampling returns the name of PIL's number of a filter. A nil number is bilinear.
func resampling(number *int) (string, error) {
	if number == nil {
		return "bilinear", nil
	}
	names := map[int]string{0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
	if name := names[*number]; name != "" {
		return name, nil
	}
	return "", fmt.Errorf("resample %d is not supported, only 0 (nearest), 1 (Lanczos), 2 (bilinear) and 3 (bicubic): %s", *number, stateYourself)
}
