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

	// Of ASTFeatureExtractor.
	Bands     int      `json:"num_mel_bins"`
	MaxLength int      `json:"max_length"` // number of frames
	Mean      *float64 `json:"mean"`
	Std       *float64 `json:"std"`

	// Of ClapFeatureExtractor.
	Seconds    float64  `json:"max_length_s"` // of an input
	Window     int      `json:"fft_window_size"`
	Low        float64  `json:"frequency_min"`
	High       *float64 `json:"frequency_max"`
	Fill       any      `json:"padding"`    // of a recording that is shorter; a text
	Truncation any      `json:"truncation"` // of a recording that is longer; a text
}

// extractorKeys are the keys of all feature extractors: "" if it is applied, or else why it is inert.
var extractorKeys = map[string]string{
	"sampling_rate": "", "feature_size": "", "do_normalize": "", "padding_value": "", "padding_side": "",
	"return_attention_mask": "a further input of the model",
	"max_length":            "the length of the model's input decides",
	"padding":               "the length of the model's input decides",
	"truncation":            "the length of the model's input decides",
}

// An extractor is a class of feature extractors: what it makes of a config, the further keys that it
// reads, as in extractorKeys, and the sampling rate without one.
type extractor struct {
	settings func(extractorConfig) (Settings, error)
	keys     map[string]string
	rate     int
}

var extractors = map[string]extractor{
	"Wav2Vec2FeatureExtractor": {extractorConfig.waveform, nil, 16000},
	"WhisperFeatureExtractor": {extractorConfig.whisper, map[string]string{
		"n_fft": "", "hop_length": "", "chunk_length": "", "dither": "",
		"mel_filters":   "computed from the other keys",
		"n_samples":     "computed from chunk_length and sampling_rate",
		"nb_max_frames": "computed from n_samples and hop_length",
	}, 16000},
	"ASTFeatureExtractor": {extractorConfig.ast, map[string]string{
		"num_mel_bins": "", "max_length": "", "mean": "", "std": "",
		"mel_filters": "computed from the other keys",
		"window":      "a Hann window",
	}, 16000},
	"ClapFeatureExtractor": {extractorConfig.clap, map[string]string{
		"hop_length": "", "max_length_s": "", "fft_window_size": "", "frequency_min": "", "frequency_max": "", "padding": "", "truncation": "",
		"top_db":            "the class does not read it",
		"nb_frequency_bins": "computed from fft_window_size",
		"nb_max_samples":    "computed from max_length_s and sampling_rate",
		"nb_max_frames":     "the class does not read it",
		"chunk_length_s":    "the class does not read it",
		"n_fft":             "the class does not read it",
	}, 48000},
}

// isExtractor reports whether a class is a feature extractor, which takes audio.
func isExtractor(class string) bool { return strings.HasSuffix(class, "FeatureExtractor") }

// parseExtractor reads a config for audio. Missing keys have the defaults of the library
// transformers. A key whose value is not supported is an error.
func parseExtractor(config map[string]json.RawMessage) (Settings, error) {
	var c extractorConfig
	if err := decode(config, map[string]json.RawMessage{}, &c); err != nil {
		return Settings{}, err
	}
	class, known := extractors[c.Type]
	if !known {
		return Settings{}, fmt.Errorf("feature_extractor_type %q is not supported: %s are; %s", c.Type, strings.Join(slices.Sorted(maps.Keys(extractors)), ", "), stateAudioYourself)
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		_, own := class.keys[key]
		_, common := extractorKeys[key]
		if _, inert := inertKeys[key]; !own && !common && !inert {
			return Settings{}, fmt.Errorf("%s: %.80s is not supported, and may change the model's input: %s", key, config[key], stateAudioYourself)
		}
	}
	if _, given := config["sampling_rate"]; !given {
		c.Rate = class.rate
	}
	switch {
	case c.Rate < 1 || c.Rate > dataset.MaxRate:
		return Settings{}, fmt.Errorf("sampling_rate %d is not 1 to %d", c.Rate, dataset.MaxRate)
	case c.Padding != 0 || c.Side != "" && c.Side != "right":
		return Settings{}, fmt.Errorf("padding with %v on the side %q is not supported: only zeros on the right are", c.Padding, cmp.Or(c.Side, "right"))
	case c.Dither != 0:
		return Settings{}, fmt.Errorf("dither %v is not supported: its noise is random", c.Dither)
	}
	return class.settings(c)
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

// ast returns the preprocessing of the Audio Spectrogram Transformer: Kaldi's filter banks. Frames of
// zeros are added to those of a recording before the normalisation.
func (c extractorConfig) ast() (Settings, error) {
	s := &logmel.Settings{Rate: c.Rate, Mels: cmp.Or(c.Bands, 128), Low: 20, Kaldi: &logmel.Kaldi{WindowType: "hanning", Preemphasis: 0.97, Frames: cmp.Or(c.MaxLength, 1024)}}
	if c.DoNormalize == nil || *c.DoNormalize {
		s.Mean, s.Std = -4.2677393, 2*4.5689974
		if c.Mean != nil {
			s.Mean = *c.Mean
		}
		if c.Std != nil {
			s.Std = 2 * *c.Std
		}
	}
	p := Settings{Frame: dataset.Frame{Rate: c.Rate}, Features: s}
	return p, p.CheckAudio()
}

// clap returns the preprocessing of CLAP without fusion: a spectrogram in decibels of some seconds.
// Of a longer recording the library takes an excerpt at random.
func (c extractorConfig) clap() (Settings, error) {
	repeat := ""
	switch c.Fill {
	case nil, "repeatpad":
		repeat = "repeatpad"
	case "repeat":
		repeat = "repeat"
	case "pad":
	default:
		return Settings{}, fmt.Errorf("padding %v of ClapFeatureExtractor is not repeatpad, repeat or pad", c.Fill)
	}
	switch {
	case c.Truncation != "rand_trunc":
		return Settings{}, fmt.Errorf("truncation %v of ClapFeatureExtractor is not supported, which joins a recording and excerpts of it at random: only rand_trunc is; %s", cmp.Or(c.Truncation, any("fusion")), stateAudioYourself)
	case !(c.Seconds >= 0 && c.Seconds <= dataset.MaxSeconds):
		return Settings{}, fmt.Errorf("max_length_s %v is not 0 to %d seconds", c.Seconds, dataset.MaxSeconds)
	}
	high, window := 14000., cmp.Or(c.Window, 1024)
	if c.High != nil {
		high = *c.High
	}
	p := Settings{
		Frame: dataset.Frame{Rate: c.Rate, Length: int(cmp.Or(c.Seconds, 10) * float64(c.Rate)), Repeat: repeat},
		Features: &logmel.Settings{Rate: c.Rate, FFT: window, Window: window, Hop: cmp.Or(c.Hop, 480), Mels: cmp.Or(c.Size, 64), Low: c.Low, High: high,
			Scale: "slaney", Area: true, Log: "db", Offset: 1e-10, Clamp: true},
	}
	return p, p.CheckAudio()
}
