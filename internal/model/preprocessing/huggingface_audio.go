package preprocessing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model/logmel"
)

type extractorConfig struct {
	Type        string  `json:"feature_extractor_type"`
	Rate        int     `json:"sampling_rate"` // values per second
	Size        int     `json:"feature_size"`  // number of mel bands; 1 for a waveform
	DoNormalize *bool   `json:"do_normalize"`
	Padding     float64 `json:"padding_value"`
	Side        string  `json:"padding_side"` // right or left
	FFT         int     `json:"n_fft"`        // values of a frame of the spectrogram
	Hop         int     `json:"hop_length"`   // values from one frame to the next
	Chunk       float64 `json:"chunk_length"` // seconds of an input
	Dither      float64 `json:"dither"`       // standard deviation of noise that is added
}

// extractorKeys are the keys of a feature extractor: "" if it is applied, or else why it is inert.
var extractorKeys = map[string]string{
	"sampling_rate": "", "feature_size": "", "do_normalize": "", "padding_value": "", "padding_side": "",
	"n_fft": "", "hop_length": "", "chunk_length": "", "dither": "",
	"mel_filters":           "computed from the other keys",
	"n_samples":             "computed from chunk_length and sampling_rate",
	"nb_max_frames":         "computed from n_samples and hop_length",
	"return_attention_mask": "a further input of the model",
	"max_length":            "the length of the model's input decides",
	"padding":               "the length of the model's input decides",
	"truncation":            "the length of the model's input decides",
}

// isExtractor reports whether a class is a feature extractor, which takes audio.
func isExtractor(class string) bool { return strings.HasSuffix(class, "FeatureExtractor") }

// parseExtractor reads a config for audio. Missing keys have the defaults of the library
// transformers. A key whose value is not supported is an error.
func parseExtractor(config map[string]json.RawMessage) (Settings, error) {
	c := extractorConfig{Rate: 16000}
	if err := decode(config, map[string]json.RawMessage{}, &c); err != nil {
		return Settings{}, err
	}
	if c.Type != "Wav2Vec2FeatureExtractor" && c.Type != "WhisperFeatureExtractor" {
		return Settings{}, fmt.Errorf("feature_extractor_type %q is not supported: Wav2Vec2FeatureExtractor and WhisperFeatureExtractor are; "+
			"%s", c.Type, stateAudioYourself)
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		_, known := extractorKeys[key]
		if _, inert := inertKeys[key]; !known && !inert {
			return Settings{}, fmt.Errorf("%s: %.80s is not supported, and may change the model's input: %s", key, config[key], stateAudioYourself)
		}
	}
	switch {
	case c.Rate < 1 || c.Rate > dataset.MaxRate:
		return Settings{}, fmt.Errorf("sampling_rate %d is not 1 to %d", c.Rate, dataset.MaxRate)
	case c.Padding != 0 || c.Side != "" && c.Side != "right":
		return Settings{}, fmt.Errorf("padding with %v on the side %q is not supported: only zeros on the right are", c.Padding, cmp.Or(c.Side, "right"))
	case c.Dither != 0:
		return Settings{}, fmt.Errorf("dither %v is not supported: its noise is random", c.Dither)
	case c.Type == "Wav2Vec2FeatureExtractor":
		return c.waveform()
	}
	return c.whisper()
}

// stateAudioYourself says how to go on without a config for audio.
const stateAudioYourself = "state the preprocessing in the study instead: preprocess: {rate: ..., standardise: true}, and features if the model takes a spectrogram"

// waveform returns the preprocessing of wav2vec 2.0, HuBERT, WavLM and related models.
func (c extractorConfig) waveform() (Settings, error) {
	if c.Size > 1 {
		return Settings{}, fmt.Errorf("feature_size %d is not supported: Wav2Vec2FeatureExtractor has 1", c.Size)
	}
	return Settings{Frame: dataset.Frame{Rate: c.Rate}, Standardise: c.DoNormalize == nil || *c.DoNormalize}, nil
}

// whisper returns the preprocessing of Whisper: a log-mel spectrogram of 30 seconds.
func (c extractorConfig) whisper() (Settings, error) {
	if c.DoNormalize != nil && *c.DoNormalize {
		return Settings{}, fmt.Errorf("do_normalize of WhisperFeatureExtractor is not supported: %s", stateAudioYourself)
	}
	if !(c.Chunk >= 0 && c.Chunk <= dataset.MaxSeconds) {
		return Settings{}, fmt.Errorf("chunk_length %v is not 0 to %d seconds", c.Chunk, dataset.MaxSeconds)
	}
	fft := cmp.Or(c.FFT, 400)
	// transformers computes (y + 4) / 4 of the logarithm y: Mean is -4 and Std is 4.
	p := Settings{
		Frame: dataset.Frame{Rate: c.Rate, Length: int(cmp.Or(c.Chunk, 30) * float64(c.Rate))},
		Features: &logmel.Settings{Rate: c.Rate, FFT: fft, Window: fft, Hop: cmp.Or(c.Hop, 160), Mels: cmp.Or(c.Size, 80), High: 8000,
			Scale: "slaney", Area: true, Log: "log10", Offset: 1e-10, Clamp: true, Range: 8, Mean: -4, Std: 4, DropLast: true},
	}
	return p, p.CheckAudio()
}
