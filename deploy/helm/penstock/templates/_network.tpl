{{- define "penstock.policy" -}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  labels: {{- include "penstock.labels" .root | nindent 4 }}
{{- end -}}

{{- define "penstock.peer" -}}
podSelector: {matchLabels: {app.kubernetes.io/name: penstock, app.kubernetes.io/instance: {{ .root.Release.Name }}, app.kubernetes.io/component: {{ .component }}}}
{{- end -}}

{{- define "penstock.graphServers" -}}
podSelector: {matchLabels: {app: graph-instance}}
{{- end -}}

{{- define "penstock.dns" -}}
- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
{{- end -}}

{{- define "penstock.outbound" -}}
- to:
    {{- range .Values.networkPolicies.outbound }}
    - ipBlock:
        cidr: {{ . }}
        {{- if and $.Values.networkPolicies.outboundExcept (hasSuffix "/0" .) }}
        except: {{ toJson $.Values.networkPolicies.outboundExcept }}
        {{- end }}
    {{- end }}
{{- end -}}

{{- define "penstock.addresses" -}}
{{- range . }}
- to: [{ipBlock: {cidr: {{ .cidr }}}}]
  ports: [{port: {{ .port }}, protocol: TCP}]
{{- end }}
{{- end }}
