package preprocessing

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
)

// A processorClass is an image or video processor of the library transformers.
type processorClass struct {
	Name     string                     // in full, for errors; "": the config names no class
	Video    bool                       // it takes videos
	Defaults map[string]json.RawMessage `json:"defaults"` // of the keys that a config leaves out
	Standard bool                       `json:"standard"` // its steps are those that this package applies
	Ignores  []string                   `json:"ignores"`  // switches without effect
	Pads     bool                       `json:"pads"`     // do_pad pads images whose size is fixed too
}

//go:embed processors.json
var processorsJSON []byte

// A processorTable holds the classes of the library by their names without suffix, and the class of
// each type of model. processors.py writes it.
type processorTable struct {
	Image map[string]processorClass `json:"image"`
	Video map[string]processorClass `json:"video"`
	Types map[string]string         `json:"types"`
}

var processors = sync.OnceValue(func() processorTable {
	var t processorTable
	if err := json.Unmarshal(processorsJSON, &t); err != nil {
		panic(err) // the file is part of the program
	}
	return t
})

// imageClass returns the class of a name such as ViTImageProcessor, ViTImageProcessorFast or, from
// older versions, ViTFeatureExtractor.
func imageClass(name string) (processorClass, bool) {
	return findClass(processors().Image, name, "ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")
}

// videoClass returns the class of a name such as VideoMAEVideoProcessor.
func videoClass(name string) (processorClass, bool) {
	c, ok := findClass(processors().Video, name, "VideoProcessor")
	c.Video = true
	return c, ok
}

func findClass(table map[string]processorClass, name string, suffixes ...string) (processorClass, bool) {
	for _, suffix := range suffixes {
		short, cut := strings.CutSuffix(name, suffix)
		if c, ok := table[short]; cut && ok {
			c.Name = name
			return c, true
		}
	}
	return processorClass{}, false
}

// short returns the name without its suffix, as in the table.
func (c processorClass) short() string {
	for _, suffix := range []string{"ImageProcessor", "FeatureExtractor", "VideoProcessor"} {
		if name, _, cut := strings.Cut(c.Name, suffix); cut {
			return name
		}
	}
	return ""
}

// defaultsOf returns the values of the keys that a config leaves out. A config without a class
// resizes, crops and normalises if it has the values for it.
func (c processorClass) defaultsOf(config map[string]json.RawMessage) map[string]json.RawMessage {
	if c.Name != "" {
		return c.Defaults
	}
	given := func(key string) json.RawMessage {
		if _, ok := config[key]; ok {
			return json.RawMessage("true")
		}
		return json.RawMessage("false")
	}
	return map[string]json.RawMessage{
		"do_resize": given("size"), "do_center_crop": given("crop_size"), "do_normalize": given("image_mean"),
		"do_rescale": json.RawMessage("true"), "resample": json.RawMessage("2"), "default_to_square": json.RawMessage("true"),
	}
}
