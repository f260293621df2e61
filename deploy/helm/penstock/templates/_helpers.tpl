{{- define "penstock.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "penstock.labels" -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* An image by digest where there is one. Arguments: root, image. */ -}}
{{- define "penstock.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "penstock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "penstock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "penstock.pull" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "penstock.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Replicas on different nodes and zones where there are several. Arguments: root, component. */ -}}
{{- define "penstock.spread" -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "penstock.selector" $.root | nindent 8 }}
        {{- toYaml $.labels | nindent 8 }}
  {{- end }}
{{- end -}}

{{- /* Settings as environment; later maps win. Argument: a list of maps. */ -}}
{{- define "penstock.environment" -}}
{{- $all := dict -}}
{{- range . }}{{ $all = merge (deepCopy .) $all }}{{ end -}}
{{- range $name, $value := $all }}
- name: {{ $name }}
  value: {{ if kindIs "string" $value }}{{ $value | quote }}{{ else }}{{ $value | toJson | quote }}{{ end }}
{{- end }}
{{- end -}}

{{- define "penstock.url" -}}
http://{{ include "penstock.name" . }}-control-plane.{{ .Release.Namespace }}.svc:8080
{{- end -}}

{{- define "penstock.probes" -}}
startupProbe: {httpGet: {path: /health, port: http}, periodSeconds: 2, failureThreshold: 60}
livenessProbe: {httpGet: {path: /health, port: http}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6}
readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5, timeoutSeconds: 5}
{{- end -}}

{{- /* The template of a worker's pods. Arguments: root, name, worker, component, args, restartPolicy. */ -}}
{{- define "penstock.workerPod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "penstock.selector" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    penstock.dev/worker: {{ .name }}
spec:
  serviceAccountName: {{ include "penstock.name" $root }}-worker
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  # Longer than the drain: short work ends, the rest is handed back.
  terminationGracePeriodSeconds: {{ add .worker.graceSeconds 30 }}
  {{- include "penstock.pull" $root | nindent 2 }}
  securityContext: {{- include "penstock.podSecurity" $root | nindent 4 }}
  {{- include "penstock.placement" $root | nindent 2 }}
  containers:
    - name: worker
      image: {{ include "penstock.image" (dict "root" $root "image" $root.Values.image.platform) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ toJson .args }}
      securityContext: {{- include "penstock.containerSecurity" $root | nindent 8 }}
      ports: [{name: http, containerPort: 9090}]
      env:
        - name: PENSTOCK_WORKER_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        {{- $own := dict "PENSTOCK_URL" (include "penstock.url" $root) "PENSTOCK_SECRETS_DIR" "/etc/penstock/secrets" "PENSTOCK_WORKER_QUEUES" (join "," .worker.queues) "PENSTOCK_WORKER_SLOTS" .worker.slots "PENSTOCK_WORKER_GRACE_SECONDS" .worker.graceSeconds "PENSTOCK_WORKER_HOST" "0.0.0.0" "PENSTOCK_WORKER_PORT" 9090 }}
        {{- include "penstock.environment" (list $root.Values.settings .worker.settings $own) | nindent 8 }}
      {{- include "penstock.probes" $root | nindent 6 }}
      resources: {{- toYaml .worker.resources | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: secrets, mountPath: /etc/penstock/secrets, readOnly: true}
  volumes:
    - {name: tmp, emptyDir: {sizeLimit: {{ .worker.scratch }}}}
    - name: secrets
      secret: {secretName: {{ $root.Values.secrets.shared }}, defaultMode: 0440}
{{- end -}}

{{- /* The trigger of KEDA on our view. Arguments: queues, columns, target, activation, type. */ -}}
{{- define "penstock.trigger" -}}
- type: postgresql
  metricType: AverageValue
  metadata:
    query: >-
      SELECT coalesce({{ .value }}, 0)::float8 FROM penstock.scaling
      WHERE queue IN ('{{ join "', '" .queues }}')
    targetQueryValue: {{ .target | toString | quote }}
    activationTargetQueryValue: {{ .activation | toString | quote }}
  authenticationRef: {name: {{ include "penstock.name" .root }}-scaling}
{{- end -}}
