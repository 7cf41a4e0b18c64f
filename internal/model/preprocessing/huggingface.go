package preprocessing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/filesys"
)

// ReadConfig reads the preprocessor_config.json of a model of the Transformers library. Missing
// keys: images are multiplied by 1/255, resampling is bilinear, and without size, crop_size or
// image_mean the image is not resized, cropped or normalised. An option that changes the image and
// that Settings cannot represent is an error. For audio it supports Wav2Vec2FeatureExtractor and
// WhisperFeatureExtractor. Settings round the start of a centre crop to even as torchvision does,
// Transformers down, so a crop may differ by a pixel.
func ReadConfig(path string) (Settings, error) {
	f, err := filesys.Open(path)
	if err != nil {
		return Settings{}, fmt.Errorf("reading a preprocessor config: %w", err)
	}
	defer f.Close()
	const maxBytes = 1 << 20
	data, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return Settings{}, fmt.Errorf("reading a preprocessor config: %w", err)
	}
	p, err := parseHuggingFace(data)
	if err != nil {
		return Settings{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return p, nil
}

// A nil pointer is a missing key.
type processorConfig struct {
	Type          string       `json:"image_processor_type"`
	OldType       string       `json:"feature_extractor_type"`
	DoResize      *bool        `json:"do_resize"`
	Size          *configSize  `json:"size"`
	Resample      *int         `json:"resample"`
	CropPct       float64      `json:"crop_pct"`
	DoCenterCrop  *bool        `json:"do_center_crop"`
	CropSize      *configSize  `json:"crop_size"`
	DoRescale     *bool        `json:"do_rescale"`
	RescaleFactor *float64     `json:"rescale_factor"`
	RescaleOffset bool         `json:"rescale_offset"`
	DoNormalize   *bool        `json:"do_normalize"`
	Mean          configValues `json:"image_mean"`
	Std           configValues `json:"image_std"`
	DoFlip        bool         `json:"do_flip_channel_order"`
	DoPad         bool         `json:"do_pad"`
}

// A configSize is a number, or an object that gives one or two sides, in pixels.
type configSize struct {
	side          int // the plain number; 0: the size is an object
	Shortest      int `json:"shortest_edge"`
	Longest       int `json:"longest_edge"`
	Height, Width int
}

func (s *configSize) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &s.side) == nil {
		return s.check()
	}
	type plain configSize
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return fmt.Errorf("size %s is not a number or an object of sides", data)
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

func parseHuggingFace(data []byte) (Settings, error) {
	if isAudio, err := isAudioConfig(data); err != nil || isAudio {
		if err != nil {
			return Settings{}, err
		}
		return parseExtractor(data)
	}
	var c processorConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return Settings{}, err
	}
	if c.DoPad {
		return Settings{}, fmt.Errorf("do_pad is not supported: set preprocess in the study file")
	}
	var p Settings
	if err := c.frame(&p.Frame); err != nil {
		return p, err
	}
	if err := c.values(&p); err != nil {
		return p, err
	}
	if c.DoFlip {
		p.Order = "bgr"
	}
	p.Frame.Channels = 3
	return p, p.Check(3)
}

func (c processorConfig) isA(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(cmp.Or(c.Type, c.OldType), n) })
}

// frame reads resizing and cropping into f. Resize is the shorter side after resizing, and Height
// and Width are the size of the crop; if Resize is 0, the image is resized to Height and Width.
// With Square, both sides are resized to Resize.
func (c processorConfig) frame(f *dataset.Frame) error {
	var err error
	if f.Interpolation, err = resampling(c.Resample); err != nil {
		return err
	}
	if c.Size != nil && orElse(c.DoResize, true) {
		if err := c.resize(f, *c.Size); err != nil {
			return err
		}
	}
	if c.CropSize == nil || !orElse(c.DoCenterCrop, true) {
		return nil
	}
	return c.crop(f, *c.CropSize)
}

func (c processorConfig) resize(f *dataset.Frame, s configSize) error {
	if s.side > 0 {
		s = c.plainSize(s.side)
	}
	switch {
	case s.Longest > 0:
		return fmt.Errorf("size with longest_edge is not supported: set preprocess in the study file")
	case s.Shortest > 0 && (s.Height > 0 || s.Width > 0):
		return fmt.Errorf("size has both shortest_edge and height or width")
	case s.Shortest > 0:
		return c.resizeShort(f, s.Shortest)
	case s.Height == 0 || s.Width == 0:
		return fmt.Errorf("size needs both height and width")
	}
	f.Height, f.Width = s.Height, s.Width
	return nil
}

// Most older processors use it for both sides, those in the list for the shorter one.
func (c processorConfig) plainSize(side int) configSize {
	if c.isA("CLIP", "ChineseCLIP", "ConvNext", "Levit", "MobileNetV1", "MobileNetV2", "MobileViT", "Bit", "PoolFormer", "VideoMAE") {
		return configSize{Shortest: side}
	}
	return configSize{Height: side, Width: side}
}

// With crop_pct (ConvNext, PoolFormer), the shorter side is resized to size / crop_pct, and the
// image cropped to size. From 384 pixels on, ConvNext resizes to a square. Levit resizes to 256/224
// of the size.
func (c processorConfig) resizeShort(f *dataset.Frame, side int) error {
	f.Resize = side
	if c.isA("Levit") {
		f.Resize = side * 256 / 224
	}
	pct := c.CropPct
	if pct == 0 && c.isA("ConvNext") {
		pct = 224. / 256
	}
	if pct == 0 {
		return nil
	}
	if pct < 0.01 || pct > 1 {
		return fmt.Errorf("crop_pct is %v: it must be above 0 and at most 1", pct)
	}
	f.Height, f.Width = side, side
	if c.isA("ConvNext") && side >= 384 {
		f.Resize = 0
		return nil
	}
	f.Resize = int(float64(side) / pct)
	return nil
}

// A resize to both sides and then a crop of another size is an error unless both sides are equal,
// since a dataset.Frame cannot represent it.
func (c processorConfig) crop(f *dataset.Frame, s configSize) error {
	if s.side > 0 {
		s = configSize{Height: s.side, Width: s.side}
	}
	if s.Height == 0 || s.Width == 0 {
		return fmt.Errorf("crop_size needs height and width")
	}
	if f.Resize == 0 && f.Height > 0 && (f.Height != s.Height || f.Width != s.Width) {
		if f.Height != f.Width {
			return fmt.Errorf("resizing to %d x %d and then cropping to %d x %d is not supported: only squares are cropped", f.Height, f.Width, s.Height, s.Width)
		}
		f.Resize, f.Square = f.Height, true
	}
	if f.Resize == 0 && f.Height == 0 {
		return fmt.Errorf("a crop without a size to resize to is not supported")
	}
	f.Height, f.Width = s.Height, s.Width
	return nil
}

func (c processorConfig) values(p *Settings) error {
	factor := 1. / 255
	if c.RescaleFactor != nil {
		factor = *c.RescaleFactor
	}
	if !orElse(c.DoRescale, true) {
		factor = 1
	}
	if !(factor > 0) {
		return fmt.Errorf("rescale_factor %v is not supported", factor)
	}
	if high := float32(255 * factor); high != 1 {
		p.Range = [2]float32{0, high}
	}
	if c.RescaleOffset && orElse(c.DoRescale, true) {
		p.Range = [2]float32{-1, float32(255*factor) - 1}
	}
	if !orElse(c.DoNormalize, len(c.Mean) > 0) {
		return nil
	}
	if len(c.Mean) == 0 || len(c.Std) == 0 {
		return fmt.Errorf("do_normalize needs image_mean and image_std")
	}
	p.Mean, p.Std = c.Mean, c.Std
	return nil
}

func orElse(v *bool, fallback bool) bool {
	if v == nil {
		return fallback
	}
	return *v
}

// resampling returns the name of PIL's number of a filter. A nil number is bilinear.
func resampling(number *int) (string, error) {
	if number == nil {
		return "bilinear", nil
	}
	switch *number {
	case 0:
		return "nearest", nil
	case 2:
		return "bilinear", nil
	case 3:
		return "bicubic", nil
	}
	return "", fmt.Errorf("resample %d is not supported: use 0 (nearest), 2 (bilinear) or 3 (bicubic)", *number)
}
