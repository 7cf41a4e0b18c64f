// Package mlflow logs to an MLflow tracking server through its REST interface (version 2.0):
// experiments, runs, and their parameters, tags, metrics and artifacts.
//
// It keeps to the limits of the interface: it replaces characters in names, truncates long values,
// and logs in batches of less than 1 MB. Artifacts are uploaded through the server if it offers
// that (addresses that start with mlflow-artifacts:). If it names a store such as S3 instead,
// uploads return ErrArtifacts.
package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits: numbers per batch, and lengths in bytes. In JSON a byte takes at most six.
const (
	maxMetrics = 1000
	maxPairs   = 25 // parameters or tags; the interface takes 100, of 1 MB in all
	maxName    = 250
	maxText    = 5000 // of a tag; a parameter may be a little longer
)

// ErrArtifacts is returned if the server does not take artifacts itself.
var ErrArtifacts = errors.New("the server stores artifacts elsewhere and takes no uploads of them")

// A Client is a client of one server.
type Client struct {
	base     *url.URL
	http     *http.Client
	token    string
	user     string
	password string
}

// Credentials are the credentials of the server. All may be empty.
type Credentials struct{ Token, User, Password string }

// New returns a client of the server at an address such as http://localhost:5000.
func New(address string, c Credentials) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("%q is no address of an MLflow server: it looks like http://localhost:5000", address)
	}
	if base.User != nil {
		c.User = base.User.Username()
		c.Password, _ = base.User.Password()
		base.User = nil
	}
	// A redirection might take the credentials elsewhere.
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: base, http: &http.Client{Timeout: 2 * time.Minute, CheckRedirect: refuse}, token: c.Token, user: c.User, password: c.Password}, nil
}

// Experiment returns the id of the experiment with a name, and creates it if there is none.
func (c *Client) Experiment(ctx context.Context, name string) (string, error) {
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		} `json:"experiment"`
	}
	err := c.call(ctx, http.MethodGet, "experiments/get-by-name?"+url.Values{"experiment_name": {name}}.Encode(), nil, &found)
	var failed *statusError
	if errors.As(err, &failed) && failed.Code == "RESOURCE_DOES_NOT_EXIST" {
		var created struct {
			ID string `json:"experiment_id"`
		}
		err = c.call(ctx, http.MethodPost, "experiments/create", map[string]any{"name": name}, &created)
		return created.ID, err
	}
	return found.Experiment.ID, err
}

// A Run is one run of an experiment.
type Run struct {
	ID        string
	client    *Client
	artifacts string // address of its artifacts
}

// Start creates a run of the experiment with an id. parent is the id of its parent run, or "".
func (c *Client) Start(ctx context.Context, experiment, name, parent string, began time.Time) (*Run, error) {
	tags := []pair{{"mlflow.source.name", "noether"}, {"mlflow.runName", truncate(name, maxText)}}
	if parent != "" {
		tags = append(tags, pair{"mlflow.parentRunId", parent})
	}
	var created struct {
		Run struct {
			Info struct {
				ID        string `json:"run_id"`
				Artifacts string `json:"artifact_uri"`
			} `json:"info"`
		} `json:"run"`
	}
	body := map[string]any{"experiment_id": experiment, "run_name": truncate(name, maxText), "start_time": began.UnixMilli(), "tags": tags}
	if err := c.call(ctx, http.MethodPost, "runs/create", body, &created); err != nil {
		return nil, err
	}
	if created.Run.Info.ID == "" {
		return nil, errors.New("the MLflow server names no run")
	}
	return &Run{ID: created.Run.Info.ID, client: c, artifacts: created.Run.Info.Artifacts}, nil
}

// End marks the run as finished or as failed.
func (r *Run) End(ctx context.Context, ok bool, at time.Time) error {
	status := "FINISHED"
	if !ok {
		status = "FAILED"
	}
	return r.client.call(ctx, http.MethodPost, "runs/update", map[string]any{"run_id": r.ID, "status": status, "end_time": at.UnixMilli()}, nil)
}

// Artifact uploads a file under a path within the run's artifacts.
func (r *Run) Artifact(ctx context.Context, path string, content io.Reader) error {
	within, ok := strings.CutPrefix(r.artifacts, "mlflow-artifacts:")
	if !ok {
		return fmt.Errorf("%w: %s", ErrArtifacts, r.artifacts)
	}
	if authority, found := strings.CutPrefix(within, "//"); found {
		host, rest, _ := strings.Cut(authority, "/")
		if host != "" && host != r.client.base.Host {
			return fmt.Errorf("%w: %s", ErrArtifacts, r.artifacts)
		}
		within = rest
	}
	to := r.client.base.JoinPath("api/2.0/mlflow-artifacts/artifacts", within, path)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, to.String(), content)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	return r.client.do(req, nil)
}

type statusError struct {
	Status  int    `json:"-"`
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the MLflow server answers %d %s %s", e.Status, e.Code, strings.Join(strings.Fields(truncate(e.Message, 300)), " "))
}

// call sends body as JSON to a path of the interface, and decodes the response into answer. Both
// may be nil.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+"/api/2.0/mlflow/"+path, content)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.do(req, answer)
}

// maxAnswer bounds the size of a response in bytes.
const maxAnswer = 8 << 20

// do sends a request with the credentials, and decodes the response into answer unless it is nil.
func (c *Client) do(req *http.Request, answer any) error {
	switch {
	case c.token != "":
		req.Header.Set("Authorization", "Bearer "+c.token)
	case c.user != "":
		req.SetBasicAuth(c.user, c.password)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("the MLflow server: %w", err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the MLflow server: %w", err)
	}
	if res.StatusCode/100 != 2 {
		e := &statusError{Status: res.StatusCode}
		if json.Unmarshal(raw, e) != nil {
			e.Message = string(raw)
		}
		return e
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("the MLflow server at %s answers no JSON: is it an MLflow server? %w", c.base, err)
	}
	return nil
}
