package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// acpSettings are what can be set of a session.
type acpSettings struct {
	mode, model acpSetting
}

// acpSetting is one of them, with what the agent offers for it.
type acpSetting struct {
	current string
	values  []string // nil: the agent offers none
	config  string   // the option that holds it; "" for the protocol's own call
}

// readACPSettings takes them from an answer that opens a session. Version 1
// has modes and models of their own; in both versions they may be options of
// the session:
//
//	{"modes":{"currentModeId":"a","availableModes":[{"id":"a"}]},
//	 "configOptions":[{"id":"model","category":"model","currentValue":"m","options":[{"value":"m"}]}]}
func readACPSettings(result gjson.Result) acpSettings {
	var s acpSettings
	s.mode = acpSetting{current: strings.Clone(result.Get("modes.currentModeId").String())}
	for _, m := range result.Get("modes.availableModes.#.id").Array() {
		s.mode.values = append(s.mode.values, strings.Clone(m.String()))
	}
	s.model = acpSetting{current: strings.Clone(result.Get("models.currentModelId").String())}
	for _, m := range result.Get("models.availableModels.#.modelId").Array() {
		s.model.values = append(s.model.values, strings.Clone(m.String()))
	}
	s.read(result)
	return s
}

// update takes what the agent says that it changed.
func (s *acpSettings) update(u gjson.Result) {
	if mode := u.Get("currentModeId").String(); mode != "" {
		s.mode.current = strings.Clone(mode)
	}
	s.read(u)
}

// read takes the options of a session.
func (s *acpSettings) read(v gjson.Result) {
	for _, o := range v.Get("configOptions").Array() {
		setting := acpSetting{config: firstText(o.Get("id").String(), o.Get("configId").String()), current: strings.Clone(o.Get("currentValue").String())}
		o.Get("options").ForEach(func(_, choice gjson.Result) bool {
			for _, c := range append(choice.Get("options").Array(), choice) { // they may be grouped
				if value := c.Get("value"); value.Exists() {
					setting.values = append(setting.values, strings.Clone(value.String()))
				}
			}
			return true
		})
		switch o.Get("category").Str {
		case "mode":
			s.mode.replace(setting)
		case "model":
			s.model.replace(setting)
		}
	}
}

// replace makes an option of the session stand for a setting, unless the
// protocol's own call sets it. The two may name their values otherwise.
func (s *acpSetting) replace(option acpSetting) {
	switch {
	case s.config != "" || s.values == nil:
		*s = option
	case slices.Contains(s.values, option.current):
		s.current = option.current
	}
}

// adjust makes the session's mode and model those of a turn.
func (s *acpSession) adjust(ctx context.Context, sessionID string, t orch.ThreadOptions) error {
	mode, planned := s.agent.kind.modes[t.RuntimeMode], t.InteractionMode == "plan"
	if planned {
		mode = s.agent.kind.modes["plan"]
	}
	settings := s.facts.set()
	if planned && !slices.Contains(settings.mode.values, mode) {
		return fmt.Errorf("the agent has no mode for planning: it offers %s", strings.Join(settings.mode.values, ", "))
	}
	if has := settings.mode; mode != "" && mode != has.current && slices.Contains(has.values, mode) {
		err := s.setTo(ctx, "session/set_mode", acpSetMode{sessionID, mode}, sessionID, has.config, mode)
		if err != nil {
			return err
		}
		s.facts.change(func(now *acpSettings) { now.mode.current = mode })
	}
	switch has := settings.model; {
	case t.Model == "" || t.Model == has.current || has.values == nil: // an agent that offers no models has its own
		return nil
	case !slices.Contains(has.values, t.Model):
		return fmt.Errorf("the agent has no model %q: it offers %s", t.Model, strings.Join(has.values, ", "))
	default:
		err := s.setTo(ctx, "session/set_model", acpSetModel{sessionID, t.Model}, sessionID, has.config, t.Model)
		if err == nil {
			s.facts.change(func(now *acpSettings) { now.model.current = t.Model })
		}
		return err
	}
}

// setTo sets a value by the protocol's own call, or through the session's
// option.
func (s *acpSession) setTo(ctx context.Context, method string, params any, sessionID, config, value string) error {
	if config != "" {
		set := acpSetConfig{SessionID: sessionID, ConfigID: config, Value: value}
		if s.says.version > 1 {
			set.Type = "id"
		}
		method, params = "session/set_config_option", set
	}
	_, err := s.io.rpc.call(ctx, method, params, nil)
	return err
}

// set returns the settings of the session.
func (c *acpFacts) set() acpSettings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings
}

func (c *acpFacts) change(f func(*acpSettings)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.settings)
}
