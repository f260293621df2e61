INSERT INTO penstock.audit (actor, action, subject, detail) VALUES (:actor, :action, :subject, :detail)
