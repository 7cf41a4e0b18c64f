package preprocessing

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	Samples     int     `json:"n_samples"`    // values of an input
	Dither      float64 `json:"dither"`       // standard deviation of noise that is added
}

func isAudioConfig(data []byte) (bool, error) {
	var c struct {
		Type string          `json:"feature_extractor_type"`
		Rate json.RawMessage `json:"sampling_rate"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return false, err
	}
	return c.Rate != nil || strings.HasPrefix(c.Type, "Wav2Vec2") || strings.HasPrefix(c.Type, "Whisper"), nil
}

// parseExtractor reads a preprocessor_config.json for audio. Missing keys have the defaults of the
// library transformers. A key whose value is not supported is an error.
func parseExtractor(data []byte) (Settings, error) {
	c := extractorConfig{Rate: 16000}
	if err := json.Unmarshal(data, &c); err != nil {
		return Settings{}, err
	}
	switch {
	case c.Rate < 1 || c.Rate > dataset.MaxRate:
		return Settings{}, fmt.Errorf("sampling_rate %d is not 1 to %d", c.Rate, dataset.MaxRate)
	case c.Padding != 0 || c.Side != "" && c.Side != "right":
		return Settings{}, fmt.Errorf("padding with %v on the side %q is not supported: only zeros on the right are", c.Padding, cmp.Or(c.Side, "right"))
	case c.Dither != 0:
		return Settings{}, fmt.Errorf("dither %v is not supported: its noise is random", c.Dither)
	}
	switch c.Type {
	case "Wav2Vec2FeatureExtractor":
		return c.waveform()
	case "WhisperFeatureExtractor":
		return c.whisper()
	}
	return Settings{}, fmt.Errorf("feature_extractor_type %q is not supported: Wav2Vec2FeatureExtractor and WhisperFeatureExtractor are; "+
		"set rate, and features if the model takes a spectrogram, in the study file", c.Type)
}

// waveform returns the preprocessing of wav2vec 2.0, HuBERT, WavLM and related models.
func (c extractorConfig) waveform() (Settings, error) {
	if c.Size > 1 {
		return Settings{}, fmt.Errorf("feature_size %d is not supported: Wav2Vec2FeatureExtractor has 1", c.Size)
	}
	return Settings{Frame: dataset.Frame{Rate: c.Rate}, Standardise: orElse(c.DoNormalize, true)}, nil
}

// whisper returns the preprocessing of Whisper: a log-mel spectrogram of 30 seconds.
func (c extractorConfig) whisper() (Settings, error) {
	if orElse(c.DoNormalize, false) {
		return Settings{}, fmt.Errorf("do_normalize of WhisperFeatureExtractor is not supported: set preprocess in the study file")
	}
	if !(c.Chunk >= 0 && c.Chunk <= dataset.MaxSeconds) || c.Samples < 0 {
		return Settings{}, fmt.Errorf("chunk_length %v and n_samples %d: they must not be negative, and a chunk has at most %d seconds", c.Chunk, c.Samples, dataset.MaxSeconds)
	}
	fft := cmp.Or(c.FFT, 400)
	// transformers computes (y + 4) / 4 of the logarithm y: Mean is -4 and Std is 4.
	p := Settings{
		Frame: dataset.Frame{Rate: c.Rate, Length: cmp.Or(c.Samples, int(cmp.Or(c.Chunk, 30)*float64(c.Rate)))},
		Features: &logmel.Settings{Rate: c.Rate, FFT: fft, Window: fft, Hop: cmp.Or(c.Hop, 160), Mels: cmp.Or(c.Size, 80), High: 8000,
			Scale: "slaney", Area: true, Log: "log10", Offset: 1e-10, Clamp: true, Range: 8, Mean: -4, Std: 4, DropLast: true},
	}
	return p, p.CheckAudio()
}
